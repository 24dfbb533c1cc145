import { useTranslation } from "react-i18next";
import type { MapOut } from "@/api";

/** How far a map is: how many of its items are done, and how many of those failed; an empty text before its items are counted. */
export function useProgress(): (map: Pick<MapOut, "total" | "done" | "failed">) => string {
  const { t } = useTranslation("workflows");
  return ({ total, done, failed }) => {
    if (total === null) return "";
    const part = t("map.progress", { done, total });
    return failed > 0 ? `${part} · ${t("map.failed", { number: failed })}` : part;
  };
}
