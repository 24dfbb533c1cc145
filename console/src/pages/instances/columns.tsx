import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { InstanceOut } from "@/api";
import { between, type Column, Duration, Elapsed, RowLink, StateChip, When, useFaultWords } from "@/parts";
import classes from "./Filters.module.css";

/** What a list of instances shows of each. */
export function useInstanceColumns(): readonly Column<InstanceOut>[] {
  const { t } = useTranslation(["instances", "common"]);
  return useMemo(
    () => [
      { id: "state", header: t("column.state"), width: "124px", cell: (row) => <StateChip state={row.state} />, sortBy: (row) => row.state },
      {
        id: "job",
        header: t("column.job"),
        width: "minmax(140px, 1.3fr)",
        sortBy: (row) => row.job,
        cell: (row) => <RowLink href={`/jobs/${encodeURIComponent(row.job)}`}>{row.job}</RowLink>,
      },
      {
        id: "key",
        header: t("column.key"),
        width: "minmax(112px, 1fr)",
        sortBy: (row) => row.key,
        cell: (row) => (
          <RowLink href={`/instances/${row.id}`} isFaint={!row.key}>
            {row.key ?? `#${row.id}`}
          </RowLink>
        ),
      },
      { id: "fire", header: t("column.fire"), width: "188px", cell: (row) => <When at={row.fireTime} zone={row.timezone} /> },
      {
        id: "delay",
        isWideOnly: true,
        header: t("column.delay"),
        width: "96px",
        isNumeric: true,
        sortBy: delayOf,
        cell: (row) => <Duration ms={delayOf(row)} />,
      },
      {
        id: "duration",
        header: t("column.duration"),
        width: "96px",
        isNumeric: true,
        sortBy: (row) => between(row.startedAt, row.state === "RUNNING" ? new Date().toISOString() : row.finishedAt),
        cell: (row) => <Elapsed from={row.startedAt} to={row.finishedAt} isRunning={row.state === "RUNNING"} />,
      },
      { id: "attempt", isWideOnly: true, header: t("column.attempt"), width: "72px", isNumeric: true, cell: (row) => row.attempt || "–", sortBy: (row) => row.attempt },
      {
        id: "error",
        header: t("column.note"),
        width: "minmax(112px, 1fr)",
        sortBy: (row) => row.reason ?? row.errorCode,
        cell: (row) => <Note row={row} />,
      },
      { id: "id", isOptional: true, header: t("column.id"), width: "112px", isNumeric: true, sortBy: (row) => Number(row.id), cell: (row) => row.id },
      { id: "queue", isOptional: true, header: t("column.queue"), width: "minmax(112px, 1fr)", sortBy: (row) => row.queue, cell: (row) => row.queue },
      { id: "priority", isOptional: true, header: t("column.priority"), width: "96px", cell: (row) => t(`common:priority.${row.priority}`) },
      { id: "node", isOptional: true, header: t("column.node"), width: "minmax(112px, 1fr)", sortBy: (row) => row.node, cell: (row) => row.node ?? "–" },
      { id: "started", isOptional: true, header: t("column.started"), width: "188px", sortBy: (row) => row.startedAt, cell: (row) => <When at={row.startedAt} zone={row.timezone} /> },
      { id: "finished", isOptional: true, header: t("column.finished"), width: "188px", sortBy: (row) => row.finishedAt, cell: (row) => <When at={row.finishedAt} zone={row.timezone} /> },
    ],
    [t],
  );
}

/** From when it was wanted to when it began; of a retry, since its own time. */
function delayOf(row: InstanceOut): number | null {
  const late = between(row.executeTime, row.startedAt);
  return late === null ? null : Math.max(0, late);
}

function Note({ row }: { row: InstanceOut }) {
  const { t } = useTranslation();
  const meaning = useFaultWords()(row.errorCode);
  const told = row.reason ? t(`reason.${row.reason}`) : [row.errorCode, meaning].filter(Boolean).join(" ");
  return (
    <span className={classes.note} title={row.errorMsg ?? told}>
      {told}
    </span>
  );
}
