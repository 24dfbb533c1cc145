import type { GetFaultsParams, GetLettersParams } from "@/api";

/** What narrows the list down, beside the status. */
const NARROWING = ["job", "tag", "errorCode", "fingerprint", "instance", "from", "to"] as const;
/**
 * As they stand in the address. Without a status, the list shows the open letters: neither replayed nor discarded. `at` is where the list
 * begins: it hides nothing of what matches.
 */
export const FILTERS = [...NARROWING, "status", "order", "at"] as const;
export type LetterFilters = Partial<Record<(typeof FILTERS)[number], string>>;
export type Narrowing = Pick<LetterFilters, (typeof NARROWING)[number]>;

export const STATUSES = ["NEW", "REPLAYED", "SUPERSEDED", "DISCARDED", "all"] as const;
export type Status = (typeof STATUSES)[number];

export function statusOf(filters: LetterFilters): Status {
  return STATUSES.find((status) => status === filters.status) ?? "NEW";
}

/** The filters as counts take them: the order of the list, and where it begins, change nothing. */
export function countedBy(filters: LetterFilters, status: Status): GetFaultsParams {
  return status === "all" ? narrowingOf(filters) : { ...narrowingOf(filters), status };
}

/** Whether the oldest come first. */
export function isUpwards(filters: LetterFilters): boolean {
  return filters.order === "oldest";
}

/** The filters as the list takes them. */
export function paramsOf(filters: LetterFilters, status: Status): GetLettersParams {
  const { at } = filters;
  return { ...countedBy(filters, status), ...(isUpwards(filters) && { order: "oldest" as const }), ...(at && { at }) };
}

/** What narrows it down: a replay takes open letters only, so that it is asked without a status. */
export function narrowingOf(filters: LetterFilters): Narrowing {
  return Object.fromEntries(NARROWING.filter((name) => filters[name]).map((name) => [name, filters[name]]));
}

export function isNarrow(filters: LetterFilters): boolean {
  return Object.keys(narrowingOf(filters)).length > 0;
}
