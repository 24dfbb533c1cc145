import type { ForecastOut, GetForecastWhatIfParams, WhatIfOut } from "@/api";

/** Hypothetical jobs while they are written; what belongs to the other kind is kept. */
export interface TrialDraft {
  kind: "cron" | "every";
  cron: string;
  every: string;
  timezone: string;
  jobs: number;
}

export type Trial = Pick<GetForecastWhatIfParams, "cron" | "every" | "timezone" | "jobs">;

/** What the server is asked for. */
export function trialOf(draft: TrialDraft): Trial {
  const { kind, cron, every, timezone, jobs } = draft;
  return kind === "cron" ? { cron: cron.trim(), timezone, jobs } : { every: every.trim(), jobs };
}

/** What the map and the chart show: the fires of the jobs that exist, and those of the hypothetical ones. */
export interface Outline {
  from: string;
  perMinute: readonly number[];
  added: readonly number[] | null;
}

/** A what-if has the fires of the existing jobs beside its own, of the same minutes. */
export function outlineOf(forecast: ForecastOut, whatIf: WhatIfOut | undefined): Outline {
  return whatIf
    ? { from: whatIf.from, perMinute: whatIf.perMinute, added: whatIf.addedPerMinute }
    : { from: forecast.from, perMinute: forecast.perMinute, added: null };
}

/** The fires of all jobs in each minute. */
export function totalsOf({ perMinute, added }: Outline): readonly number[] {
  return added ? perMinute.map((fires, index) => fires + (added[index] ?? 0)) : perMinute;
}
