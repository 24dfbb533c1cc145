import { Text } from "@mantine/core";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { ListedJob } from "@/api";
import { Bars, between, type Column, Go, RowMenu, Status, When } from "@/parts";
import type { Asked } from "./dialogs";
import { JobSchedule, ScheduleSource } from "./schedule";
import { useActs } from "./useActs";

/** The columns of the list of jobs. */
export function useColumns(onAsk: (asked: Asked) => void): readonly Column<ListedJob>[] {
  const { t } = useTranslation(["jobs", "common"]);
  return useMemo(
    () => [
      { id: "name", header: t("column.name"), width: "minmax(200px, 1.3fr)", cell: (job) => <Name job={job} /> },
      { id: "schedule", header: t("column.schedule"), width: "minmax(200px, 1.5fr)", cell: (job) => <Schedule job={job} /> },
      {
        id: "next",
        header: t("column.next"),
        width: "176px",
        sortBy: (job) => (job.status === "PAUSED" ? null : (job.nextFire ?? null)),
        cell: (job) => (job.status === "PAUSED" ? null : <When at={job.nextFire} zone={job.timezone ?? null} as="both" />),
      },
      { id: "recent", header: t("column.recent"), width: "148px", cell: (job) => <Bars bars={barsOf(job)} /> },
      { id: "queue", header: t("column.queue"), width: "112px", cell: (job) => job.queue, sortBy: (job) => job.queue },
      { id: "status", header: t("column.status"), width: "96px", cell: (job) => <Status status={job.status} />, sortBy: (job) => job.status },
      { id: "owner", isOptional: true, header: t("column.owner"), width: "minmax(112px, 0.7fr)", cell: (job) => job.owner ?? "–", sortBy: (job) => job.owner ?? null },
      { id: "priority", isOptional: true, header: t("column.priority"), width: "96px", cell: (job) => t(`common:priority.${job.priority}`), sortBy: (job) => job.priority },
      { id: "created", isOptional: true, header: t("column.created"), width: "188px", cell: (job) => <When at={job.createdAt} /> },
      { id: "changed", isOptional: true, header: t("column.changed"), width: "188px", cell: (job) => <When at={job.updatedAt} />, sortBy: (job) => job.updatedAt },
      { id: "menu", isFixed: true, header: null, width: "56px", cell: (job) => <Acts job={job} onAsk={onAsk} /> },
    ],
    [t, onAsk],
  );
}

/** Oldest first, as one reads; the longer it ran, the taller. */
export function barsOf(job: Pick<ListedJob, "recent">) {
  const recent = job.recent ?? [];
  return recent.toReversed().map((one) => ({ id: one.id, state: one.state, durationMs: between(one.startedAt, one.finishedAt) }));
}

function Name({ job }: { job: ListedJob }) {
  return (
    <>
      <Go to="/jobs/$job" params={{ job: job.name }} inherit fw={600} c="inherit" title={job.name}>
        {job.name}
      </Go>
      <Small>{[job.title, ...job.tags].filter(Boolean).join("  ")}</Small>
    </>
  );
}

function Schedule({ job }: { job: ListedJob }) {
  return (
    <>
      <Text span size="sm">
        <JobSchedule job={job} />
      </Text>
      <Small>
        <ScheduleSource job={job} />
      </Small>
    </>
  );
}

function Acts({ job, onAsk }: { job: ListedJob; onAsk: (asked: Asked) => void }) {
  const { t } = useTranslation("jobs");
  const { trigger, hold, edit, clone } = useActs(job, onAsk);
  return <RowMenu label={t("act.menu", { name: job.name })} acts={[trigger, hold, edit, clone]} />;
}

function Small({ children }: { children: React.ReactNode }) {
  return (
    <Text size="xs" c="dimmed" truncate>
      {children}
    </Text>
  );
}
