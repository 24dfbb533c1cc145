import type { StepOut } from "@/api";

/** A record with its place on the common scale, in per cent, and its length in milliseconds. */
export interface Lane {
  step: StepOut;
  left: number;
  width: number;
  length: number;
}

const ms = (at: string): number => new Date(at).getTime();

/** The records of an instance on one scale: what is open ends now, or with the instance. */
export function lanesOf(steps: readonly StepOut[], now: number): Lane[] {
  const ends = steps.map((step) => Math.max(ms(step.startedAt), step.finishedAt ? ms(step.finishedAt) : now));
  const begin = Math.min(...steps.map((step) => ms(step.startedAt)));
  const span = Math.max(1, Math.max(...ends) - begin);
  return steps.map((step, place) => {
    const length = ends[place]! - ms(step.startedAt);
    return { step, left: ((ms(step.startedAt) - begin) / span) * 100, width: (length / span) * 100, length };
  });
}
