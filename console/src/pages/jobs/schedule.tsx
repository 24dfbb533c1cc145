import { useTranslation } from "react-i18next";
import type { JobOut } from "@/api";
import { ScheduleWords, When } from "@/parts";

type Scheduled = Pick<JobOut, "cron" | "every" | "everyFrom" | "at" | "delay" | "timezone" | "refresh">;

/** What says when a job fires, as the form calls it. */
export type WhenKind = "cron" | "every" | "at" | "delay" | "manual";

export function kindOf(job: Scheduled): WhenKind {
  if (job.cron) return "cron";
  if (job.every) return "every";
  if (job.at) return "at";
  return job.delay ? "delay" : "manual";
}

/** When a job fires, in words. */
export function JobSchedule({ job }: { job: Scheduled }) {
  const { t } = useTranslation("jobs");
  const kind = kindOf(job);
  if (kind === "every" && job.everyFrom === "finish") return t("schedule.everyFinish", { length: job.every });
  if (kind === "delay") return t("schedule.delay", { length: job.delay });
  if (kind !== "at") return <ScheduleWords of={job} />;
  return (
    <>
      {t("schedule.at")} <When at={job.at} />
    </>
  );
}

/** The expression itself, and the zone it is read in; an interval is its own words. */
export function ScheduleSource({ job }: { job: Scheduled }) {
  return job.cron ? [job.cron, job.timezone].filter(Boolean).join(" · ") : null;
}
