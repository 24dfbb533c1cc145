import type { ReactNode } from "react";

/** A column of a list. */
export interface Column<Row> {
  id: string;
  header: ReactNode;
  cell: (row: Row) => ReactNode;
  /** As in `grid-template-columns`: `"120px"`, `"minmax(160px, 1fr)"`. */
  width?: string;
  isNumeric?: boolean;
  /** Left out on a phone, so that the others are in sight. */
  isWideOnly?: boolean;
  /** Shown only where it is chosen. */
  isOptional?: boolean;
  /** Always shown: it cannot be chosen. */
  isFixed?: boolean;
  /** What a list that is loaded to its end can be sorted by; null comes last. */
  sortBy?: (row: Row) => string | number | null;
}

/** By which column, and whether its least comes first. */
export interface Sorting {
  id: string;
  isUp: boolean;
}

/** The rows in another order; those that are equal stay as they came. */
export function sorted<Row>(rows: readonly Row[], columns: readonly Column<Row>[], sorting: Sorting | null): readonly Row[] {
  const valueOf = columns.find((column) => column.id === sorting?.id)?.sortBy;
  if (!sorting || !valueOf) return rows;
  const sign = sorting.isUp ? 1 : -1;
  return rows
    .map((row) => ({ row, value: valueOf(row) }))
    .toSorted((one, other) => {
      if (one.value === null || other.value === null) return Number(one.value === null) - Number(other.value === null);
      return sign * (typeof one.value === "string" ? one.value.localeCompare(String(other.value)) : one.value - Number(other.value));
    })
    .map(({ row }) => row);
}
