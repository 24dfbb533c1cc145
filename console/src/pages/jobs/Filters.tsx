import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { getQueues } from "@/api";
import { FilterBar } from "@/parts";

export const FILTERS = ["name", "tag", "status", "queue", "owner"] as const;

/** Name or title, tag, status, queue and owner, in the address of the page. */
export function Filters() {
  const { t } = useTranslation("jobs");
  const queues = useQuery({
    queryKey: ["queues", "names"],
    queryFn: ({ signal }) => getQueues({ limit: 500 }, { signal }),
  });
  const names = (queues.data?.items ?? []).map((queue) => ({ value: queue.name, label: queue.name }));
  const statuses = (["ACTIVE", "PAUSED"] as const).map((value) => ({ value, label: t(`status.${value}`) }));
  return (
    <FilterBar
      fields={[
        { name: "name", label: t("filter.name"), kind: "text", width: 240 },
        { name: "tag", label: t("filter.tag"), kind: "text", width: 160 },
        { name: "status", label: t("filter.status"), kind: "choice", options: statuses, width: 140 },
        { name: "queue", label: t("filter.queue"), kind: "choice", options: names, width: 180 },
        { name: "owner", label: t("filter.owner"), kind: "text", width: 140 },
      ]}
    />
  );
}
