import { useCallback, useMemo, useState } from "react";
import type { Column } from "./columns";
import { useFilters } from "./filters";
import { keptText, keepText } from "./storage";

/** The columns of a list, and the choice among them. */
export interface ColumnChoice<Row> {
  /** Those that the list shows, in its own order. */
  shown: readonly Column<Row>[];
  /** Those that can be shown or hidden. */
  choosable: readonly Column<Row>[];
  isShown: (id: string) => boolean;
  isDefault: boolean;
  toggle: (id: string) => void;
  reset: () => void;
}

/** The ids of a choice as it is written, `state,job,fire`: those that the list has. Null where it names none of them. */
export function chosenIn<Row>(written: string | null | undefined, columns: readonly Column<Row>[]): ReadonlySet<string> | null {
  const known = new Set(columns.filter((column) => !column.isFixed).map((column) => column.id));
  const chosen = new Set((written ?? "").split(",").filter((id) => known.has(id)));
  return chosen.size > 0 ? chosen : null;
}

/** The columns that are shown by default. */
function usual<Row>(columns: readonly Column<Row>[]): ReadonlySet<string> {
  return new Set(columns.filter((column) => !column.isFixed && !column.isOptional).map((column) => column.id));
}

/** A choice with one column more, or one less; the last one stays. Null where it is the default. */
export function toggledIn<Row>(chosen: ReadonlySet<string> | null, id: string, columns: readonly Column<Row>[]): string | null {
  const before = chosen ?? usual(columns);
  const after = columns.map((column) => column.id).filter((each) => before.has(each) !== (each === id));
  if (after.length === 0) return [...before].join(",");
  const isUsual = after.length === usual(columns).size && after.every((each) => usual(columns).has(each));
  return isUsual ? null : after.join(",");
}

/** The columns of a list: those of the address, or else the last choice in this browser. A phone shows chosen columns, too. */
export function useColumnChoice<Row>(list: string, columns: readonly Column<Row>[]): ColumnChoice<Row> {
  const [{ columns: written }, change] = useFilters(NAMES);
  const [kept, setKept] = useState(() => keptText(`columns:${list}`));
  const text = written ?? kept;
  const chosen = useMemo(() => chosenIn(text, columns), [text, columns]);
  const shown = useMemo(() => {
    if (!chosen) return columns.filter((column) => !column.isOptional);
    return columns.filter((column) => column.isFixed || chosen.has(column.id)).map((column) => ({ ...column, isWideOnly: false }));
  }, [columns, chosen]);
  const choosable = useMemo(() => columns.filter((column) => !column.isFixed), [columns]);
  const choose = useCallback(
    (next: string | null) => {
      keepText(`columns:${list}`, next);
      setKept(next);
      change({ columns: next ?? undefined });
    },
    [list, change],
  );
  return {
    shown,
    choosable,
    isShown: (id) => (chosen ?? usual(columns)).has(id),
    isDefault: chosen === null,
    toggle: (id) => choose(toggledIn(chosen, id, columns)),
    reset: () => choose(null),
  };
}

const NAMES = ["columns"] as const;
