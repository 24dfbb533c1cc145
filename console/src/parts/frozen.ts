import { type PointerEvent, useCallback, useEffect, useRef, useState } from "react";

/** A list whose rows keep their places; its values stay up to date. */
export interface FrozenList<Row> {
  rows: readonly Row[];
  /** The rows that have left the list since: they are shown as they were last. */
  gone: ReadonlySet<string>;
  /** The number of rows that have come above and are not shown yet. */
  fresh: number;
  /** Whether there are more new rows than are loaded. */
  isMore: boolean;
}

/**
 * Keep the rows where they are. New values replace old ones in place, rows behind the last one are added, and rows in between are
 * counted. A row that is not loaded any more has left the list only if a later one is still loaded, or if the list is whole.
 */
export function frozenList<Row>(held: readonly Row[], live: readonly Row[], idOf: (row: Row) => string, isWhole: boolean): FrozenList<Row> {
  const now = new Map(live.map((row) => [idOf(row), row]));
  const known = new Set(held.map(idOf));
  const end = live.findLastIndex((row) => known.has(idOf(row)));
  const lastLoaded = isWhole ? held.length : held.findLastIndex((row) => now.has(idOf(row)));
  const gone = new Set(held.slice(0, Math.max(0, lastLoaded)).map(idOf).filter((id) => !now.has(id)));
  if (held.length === 0) return { rows: live, gone, fresh: 0, isMore: false };
  const behind = end === -1 ? [] : live.slice(end + 1);
  const above = end === -1 ? live : live.slice(0, end);
  return {
    rows: [...held.map((row) => now.get(idOf(row)) ?? row), ...behind],
    gone,
    fresh: above.filter((row) => !known.has(idOf(row))).length,
    isMore: end === -1 && live.length > 0 && !isWhole,
  };
}

const NONE: ReadonlySet<string> = new Set();

interface Held<Row> extends FrozenList<Row> {
  key: string;
  source: readonly Row[];
}

/** The rows as a table shows them: as they come, or each in its place while the list is frozen. `key` says what is listed, and in which order. */
export function useFrozen<Row>(live: readonly Row[], key: string, idOf: (row: Row) => string, isFrozen: boolean, isWhole: boolean): [FrozenList<Row>, (isReplaced?: boolean) => void] {
  const [held, hold] = useState<Held<Row> | null>(null);
  // The rows of a list that is about to be replaced: they are not held, as the list that follows would then keep them.
  const [replaced, replace] = useState<readonly Row[] | null>(null);
  let shown: FrozenList<Row> = { rows: live, gone: NONE, fresh: 0, isMore: false };
  if (!isFrozen || live === replaced) {
    if (held !== null) hold(null);
  } else if (held?.key !== key) {
    if (live.length > 0) hold({ ...shown, key, source: live });
  } else {
    shown = held.source === live ? held : frozenList(held.rows, live, idOf, isWhole);
    if (held.source !== live) hold({ ...shown, key, source: live });
  }
  const latest = useRef(live);
  useEffect(() => {
    latest.current = live;
  });
  const release = useCallback((isReplaced = false) => {
    hold(null);
    if (isReplaced) replace(latest.current);
  }, []);
  return [shown, release];
}

/** Whether a mouse or a pen is over an element. A finger is there only for as long as it touches. */
export function usePointedAt(): [boolean, { onPointerEnter: (event: PointerEvent) => void; onPointerLeave: () => void }] {
  const [isOver, setOver] = useState(false);
  return [isOver, { onPointerEnter: (event) => setOver(event.pointerType !== "touch"), onPointerLeave: () => setOver(false) }];
}
