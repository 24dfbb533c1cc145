import type { Scheduled } from "./ScheduleWords";

/** A schedule while it is written: what belongs to another kind is kept, so that a change of mind costs nothing. */
export interface ScheduleDraft {
  kind: "cron" | "every" | "none";
  cron: string;
  every: string;
  timezone: string;
}

/** What the API takes; all three are named, so that a change also takes away. */
export interface ScheduleBody {
  cron: string | null;
  every: string | null;
  timezone: string | null;
}

export function draftOf(of: Scheduled, zone: string): ScheduleDraft {
  const kind = of.cron ? "cron" : of.every ? "every" : "none";
  return { kind, cron: of.cron ?? "", every: of.every ?? "", timezone: of.timezone ?? zone };
}

export function bodyOf(draft: ScheduleDraft): ScheduleBody {
  return {
    cron: draft.kind === "cron" ? draft.cron.trim() : null,
    every: draft.kind === "every" ? draft.every.trim() : null,
    timezone: draft.kind === "cron" ? draft.timezone : null,
  };
}
