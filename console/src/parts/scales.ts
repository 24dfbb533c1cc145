export type Scale = "linear" | "log";

/** Lengths of time that people know, in milliseconds: about ten times longer each, and as short as they are written. */
const LADDER: readonly (readonly [number, string])[] = [
  [1, "1 ms"],
  [10, "10 ms"],
  [100, "100 ms"],
  [1_000, "1 s"],
  [10_000, "10 s"],
  [60_000, "1 m"],
  [600_000, "10 m"],
  [3_600_000, "1 h"],
  [36_000_000, "10 h"],
  [864_000_000, "10 d"],
];
const STEPS = LADDER.map(([step]) => step);
const ROOM = 5;

/** The steps from the one under `lowest` to the one above `most`: at least two, at most the whole ladder. */
export function decadesOf(lowest: number, most: number): number[] {
  const under = Math.max(0, STEPS.findLastIndex((step) => step <= lowest));
  const above = STEPS.findIndex((step) => step >= most);
  const last = above < 0 ? STEPS.length - 1 : Math.min(Math.max(above, under + 1), STEPS.length - 1);
  return STEPS.slice(Math.min(under, last - 1), last + 1);
}

/** What is written beside the steps: beside every second one, where they are many. */
export function labelsOf(steps: readonly number[]): string[] {
  const words = new Map(LADDER);
  const every = steps.length > ROOM ? 2 : 1;
  const second = STEPS.indexOf(1_000);
  return steps.map((step) => ((STEPS.indexOf(step) - second) % every === 0 ? (words.get(step) ?? "") : ""));
}
