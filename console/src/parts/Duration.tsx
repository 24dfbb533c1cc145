import { formatDuration } from "./time";

/** A length of time; nothing is shown as a dash. */
export function Duration({ ms }: { ms: number | null | undefined }) {
  if (ms === null || ms === undefined) {
    return <span aria-hidden>–</span>;
  }
  return <span className="numbers">{formatDuration(ms)}</span>;
}

/** The time between two instants, or null while one is missing. */
export function between(from: string | null | undefined, to: string | null | undefined): number | null {
  return from && to ? new Date(to).getTime() - new Date(from).getTime() : null;
}
