import type { MinuteOut } from "@/api";
import type { Series } from "@/parts/Chart";

/** Below a millisecond nobody can tell one delay from another; and nothing has no place on a scale of powers. */
const SHORTEST_MS = 1;

/** What each minute came to. The last has only begun: what it came to nobody knows yet. */
export function counts(minutes: readonly MinuteOut[], of: (minute: MinuteOut) => number | null): Series["values"] {
  return minutes.map((minute, index) => (index < minutes.length - 1 ? of(minute) : null));
}

/** A delay of the minutes in which anything began. */
export function delays(minutes: readonly MinuteOut[], of: (minute: MinuteOut) => number): Series["values"] {
  return counts(minutes, (minute) => (minute.started > 0 ? Math.max(of(minute), SHORTEST_MS) : null));
}

/** Of the attempts that ended in a minute; a minute without any says nothing. */
export function successes(minutes: readonly MinuteOut[]): Series["values"] {
  return counts(minutes, ({ succeeded, failed }) => (succeeded + failed > 0 ? succeeded / (succeeded + failed) : null));
}

/** While nothing begins, nobody looks for so many minutes: what was seen last still holds. */
const HOLDS = 5;

/** How much waited in each minute, as it was seen then or a little before. */
export function gauges(minutes: readonly MinuteOut[], of: (minute: MinuteOut) => number | null): Series["values"] {
  const seen = minutes.map(of);
  return seen.map((_, index) => seen.slice(Math.max(0, index - HOLDS + 1), index + 1).findLast((value) => value !== null) ?? null);
}

/** By how much something has grown from the first minute in which anybody looked to the last; null where nobody did twice. */
export function growthOf(values: Series["values"]): number | null {
  const seen = values.filter((value) => value !== null);
  return seen.length < 2 ? null : seen.at(-1)! - seen[0]!;
}
