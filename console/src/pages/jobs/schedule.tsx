import { useTranslation } from "react-i18next";
import type { JobOut } from "@/api";
import { CronWords, When } from "@/parts";

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
export function ScheduleWords({ job }: { job: Scheduled }) {
  const { t } = useTranslation(["jobs", "common"]);
  switch (kindOf(job)) {
    case "cron":
      return <CronWords cron={job.cron ?? ""} />;
    case "every":
      return t(job.everyFrom === "finish" ? "schedule.everyFinish" : "schedule.every", { length: job.every });
    case "at":
      return (
        <>
          {t("schedule.at")} <When at={job.at} />
        </>
      );
    case "delay":
      return t("schedule.delay", { length: job.delay });
    case "manual":
      return t("schedule.manual");
  }
}

/** The expression itself, and the zone it is read in; an interval is its own words. */
export function ScheduleSource({ job }: { job: Scheduled }) {
  return job.cron ? [job.cron, job.timezone].filter(Boolean).join(" · ") : null;
}
