import { clockOf } from "@/parts/time";

/** Minutes laid out by the clocks of a zone: a row an hour, a column a minute. */
export interface Grid {
  rows: number;
  /** The minute of the hour at which the first one stands. */
  shift: number;
  count: number;
}

export const COLUMNS = 60;

export function gridOf(from: Date, count: number, zone: string): Grid {
  const shift = Number(clockOf(from, zone).minute);
  return { rows: Math.ceil((shift + count) / COLUMNS), shift, count };
}

export function placeOf(index: number, grid: Grid): { row: number; column: number } {
  return { row: Math.floor((index + grid.shift) / COLUMNS), column: (index + grid.shift) % COLUMNS };
}

/** The minute at a place; null where there is none, before the first and behind the last. */
export function indexAt(row: number, column: number, grid: Grid): number | null {
  const index = row * COLUMNS + column - grid.shift;
  return column >= 0 && column < COLUMNS && index >= 0 && index < grid.count ? index : null;
}

const FAINTEST = 0.14;

/** The range of the colours: from the quietest minute that has fires to the busiest one. */
export function rangeOf(perMinute: readonly number[]): [least: number, most: number] {
  let [least, most] = [Infinity, 0];
  for (const fires of perMinute) {
    if (fires > 0) [least, most] = [Math.min(least, fires), Math.max(most, fires)];
  }
  return most === 0 ? [0, 0] : [least, most];
}

/**
 * How strongly a minute is painted, within the range of all of them: an even load shows its differences too. By the square root, so that
 * one peak does not make all others invisible.
 */
export function strengthOf(fires: number, [least, most]: readonly [number, number]): number {
  if (fires <= 0) return 0;
  return most === least ? 1 : FAINTEST + (1 - FAINTEST) * Math.sqrt((fires - least) / (most - least));
}

/** Where a key leads to from a minute: up and down an hour, left and right a minute, Home and End to the ends. */
export function stepBy(key: string, index: number, grid: Grid): number | null {
  const steps: Record<string, number> = {
    ArrowLeft: index - 1,
    ArrowRight: index + 1,
    ArrowUp: index - COLUMNS,
    ArrowDown: index + COLUMNS,
    Home: 0,
    End: grid.count - 1,
  };
  const wanted = steps[key];
  return wanted === undefined ? null : Math.max(0, Math.min(grid.count - 1, wanted));
}

/** The rows that have their hour written beside them: all of them where there is room, else every sixth. */
export function isLabelled(hour: number, rowHeight: number): boolean {
  return rowHeight >= 14 || hour % 6 === 0;
}
