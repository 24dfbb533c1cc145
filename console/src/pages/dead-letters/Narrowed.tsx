import { useTranslation } from "react-i18next";
import { Facts, When } from "@/parts";
import type { Narrowing } from "./filters";
import type { Only } from "./settling";

/** What a filter says, to be seen again before it is acted upon. */
export function Narrowed({ only }: { only: Only }) {
  const { t } = useTranslation(["dead-letters", "common"]);
  const items = Object.entries(only).flatMap(([name, value]) => (typeof value === "string" ? [[t(`filter.${name as keyof Narrowing}`), name === "from" || name === "to" ? <When key={name} at={value} /> : <bdi key={name}>{value}</bdi>] as const] : []));
  return items.length > 0 ? <Facts items={items} /> : null;
}
