import type { TFunction } from "i18next";
import type { HistoryEntry } from "@/api";
import { CANCEL_REASONS } from "@/generated/states";

interface Told {
  title: string;
  /** An instant that belongs to it: the new time, the next attempt. */
  at: string | null;
  text: string | null;
}

const KINDS = [
  "INSTANCE_INSERTED",
  "INSTANCE_RESCHEDULED",
  "INSTANCE_UNBLOCKED",
  "INSTANCE_HELD",
  "INSTANCE_RELEASED",
  "INSTANCE_FAILED",
  "INSTANCE_LOST",
  "INSTANCE_LATE_RESULT",
  "INSTANCE_DONE",
  "INSTANCE_DEAD",
  "INSTANCE_CANCELLED",
  "INSTANCE_REPLAYED",
  "INSTANCE_DISCARDED",
] as const;

/** An event in words; one that this console does not know is shown by its name. */
export function tellEvent(entry: HistoryEntry, t: TFunction<["instances", "common"]>): Told {
  const kind = KINDS.find((known) => known === entry.kind);
  const text = textsOf(entry.data ?? {});
  return {
    title: kind ? t(`event.${kind}`) : entry.kind,
    at: text("executeTime") ?? text("nextFireTime") ?? text("due"),
    text: reasonOf(text("reason"), t) ?? firstLine(text("errorMsg") ?? text("message") ?? text("errorCode")),
  };
}

function textsOf(data: Record<string, unknown>): (name: string) => string | null {
  return (name) => {
    const value = data[name];
    return typeof value === "string" ? value : null;
  };
}

function reasonOf(reason: string | null, t: TFunction<["instances", "common"]>): string | null {
  if (reason === "JOB_PAUSED") return t("why.hold.JOB_PAUSED");
  const known = CANCEL_REASONS.find((each) => each === reason);
  return known ? t(`common:reason.${known}`) : reason;
}

function firstLine(text: string | null): string | null {
  return text?.split("\n")[0] ?? null;
}
