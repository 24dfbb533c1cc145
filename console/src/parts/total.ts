import { useQuery } from "@tanstack/react-query";

/** The number of rows that match; with `more`, there are at least that many. */
export interface Counted {
  count: number;
  more: boolean;
}

/** How a list is counted. */
export interface Total {
  /** The key of the counted rows: `["instances", filters]`. */
  key: readonly unknown[];
  count: (signal: AbortSignal) => Promise<Counted>;
}

/** A count reads many rows: it is asked for this seldom, and not with each change of the list. */
const EVERY_MS = 30_000;

/** The first part of the keys of all totals. */
export const TOTALS = "totals";

/** The number of rows that match, once it is known and wanted. */
export function useTotal(total: Total | undefined, isWanted: boolean): Counted | null {
  const counted = useQuery({
    queryKey: [TOTALS, ...(total?.key ?? [])],
    queryFn: ({ signal }) => (total ? total.count(signal) : null),
    enabled: total !== undefined && isWanted,
    staleTime: EVERY_MS,
    refetchInterval: EVERY_MS,
  });
  return isWanted ? (counted.data ?? null) : null;
}

/** A total as it is read: `12,345`, or `100,000+` where not all rows were counted. */
export function totalText({ count, more }: Counted, language: string): string {
  return new Intl.NumberFormat(language).format(count) + (more ? "+" : "");
}
