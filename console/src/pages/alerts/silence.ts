import type { SilenceIn, SilenceOut } from "@/api";

/** A silence while it is written: it ends after a time, or at a time. */
export interface SilenceDraft {
  rule: string;
  job: string;
  tag: string;
  startsAt: string;
  ending: "after" | "at";
  lasts: string;
  endsAt: string;
  note: string;
}

/** The body of the request: only one of both ends, and nothing that is empty. */
export function bodyOf({ rule, job, tag, startsAt, ending, lasts, endsAt, note }: SilenceDraft): SilenceIn {
  const all = { rule, job, tag, startsAt, ...(ending === "after" ? { lasts } : { endsAt }), note };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value.trim() !== ""));
}

/** The fields that an alert must match, such as `rule=dead job=report`. */
export function matchedBy({ rule, job, tag }: SilenceOut): string {
  return Object.entries({ rule, job, tag })
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}
