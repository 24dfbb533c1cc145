import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { LetterOut } from "@/api";
import { type Column, Fault, RowLink, When } from "@/parts";
import { StatusBadge } from "./StatusBadge";

/** What a list of dead letters shows of each. */
export function useLetterColumns(): readonly Column<LetterOut>[] {
  const { t } = useTranslation(["dead-letters", "common"]);
  return useMemo(
    () => [
      { id: "at", isWideOnly: true, header: t("column.at"), width: "176px", cell: (row) => <When at={row.createdAt} zone={row.timezone} /> },
      {
        id: "job",
        header: t("column.job"),
        width: "minmax(110px, 0.7fr)",
        sortBy: (row) => row.job,
        cell: (row) => <RowLink href={`/jobs/${encodeURIComponent(row.job)}`}>{row.job}</RowLink>,
      },
      {
        id: "key",
        isWideOnly: true,
        header: t("column.key"),
        width: "minmax(130px, 0.7fr)",
        cell: (row) => (
          <RowLink href={`/dead-letters/${row.id}`} isFaint={!row.key}>
            {row.key ?? `#${row.instanceId}`}
          </RowLink>
        ),
      },
      {
        id: "error",
        header: t("column.error"),
        width: "minmax(200px, 2fr)",
        sortBy: (row) => row.errorCode,
        cell: (row) => <Fault code={row.errorCode} message={row.errorMsg} />,
      },
      { id: "status", isWideOnly: true, header: t("column.status"), width: "132px", cell: (row) => <StatusBadge status={row.replayStatus} />, sortBy: (row) => row.replayStatus },
      { id: "instance", isOptional: true, header: t("filter.instance"), width: "112px", isNumeric: true, cell: (row) => <RowLink href={`/instances/${row.instanceId}`}>{row.instanceId}</RowLink> },
      { id: "tags", isOptional: true, header: t("filter.tag"), width: "minmax(140px, 1fr)", sortBy: (row) => row.tags.join(" "), cell: (row) => row.tags.join(" ") },
      { id: "changed", isOptional: true, header: t("column.changed"), width: "176px", sortBy: (row) => row.changedAt, cell: (row) => <When at={row.changedAt} zone={row.timezone} /> },
    ],
    [t],
  );
}
