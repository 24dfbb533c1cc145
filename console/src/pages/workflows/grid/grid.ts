import type { GridNodeOut, GridOut, GridRunOut } from "@/api";

/** A place in the grid: row -1 is the head, with one run per column. */
export interface Place {
  row: number;
  column: number;
}

const STEPS: Readonly<Record<string, readonly [row: number, column: number]>> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  PageUp: [-10, 0],
  PageDown: [10, 0],
};

/** Where a key leads from a place; null for a key that leads nowhere. */
export function stepFrom(place: Place, key: string, rows: number, columns: number): Place | null {
  if (key === "Home") return { ...place, column: 0 };
  if (key === "End") return { ...place, column: columns - 1 };
  const step = STEPS[key];
  if (step === undefined) return null;
  return { row: within(place.row + step[0], -1, rows - 1), column: within(place.column + step[1], 0, columns - 1) };
}

function within(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(most, value));
}

/** How high the bar of a run is, in parts of the longest one; a run that goes on has a full bar. */
export function heightsOf(runs: readonly GridRunOut[]): number[] {
  const longest = Math.max(1, ...runs.map((run) => run.durationMs ?? 0));
  return runs.map((run) => (run.durationMs === null ? 1 : Math.max(0.1, run.durationMs / longest)));
}

/** The counts of a map as they fit in a cell: `30`, or `12/30` while it goes on; thousands as `1.2k`. */
export function countIn(counts: { total: number | null; done: number }): string {
  if (counts.total === null) return "";
  return counts.done === counts.total ? short(counts.total) : `${short(counts.done)}/${short(counts.total)}`;
}

function short(count: number): string {
  return count < 1_000 ? String(count) : `${Math.floor(count / 100) / 10}k`;
}

/** What makes a row be drawn again: a live update leaves the others as they are. */
export function signOf(node: GridNodeOut, grid: Pick<GridOut, "runs">): string {
  const counts = node.maps?.map((map) => map && `${map.done}/${map.total}/${map.failed}`).join();
  return [node.name, node.states.join(), counts, grid.runs.map((run) => run.id).join()].join(" ");
}
