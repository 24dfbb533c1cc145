import type { GetLettersParams } from "@/api";

/** As they stand in the address. Without a status the open letters are shown, those that nobody has settled. */
export const FILTERS = ["job", "tag", "errorCode", "fingerprint", "instance", "status", "from", "to"] as const;
export type LetterFilters = Partial<Record<(typeof FILTERS)[number], string>>;

export const STATUSES = ["NEW", "REPLAYED", "SUPERSEDED", "DISCARDED", "all"] as const;
export type Status = (typeof STATUSES)[number];

export function statusOf(filters: LetterFilters): Status {
  return STATUSES.find((status) => status === filters.status) ?? "NEW";
}

/** The filters as the API takes them. */
export function paramsOf(filters: LetterFilters, status: Status): GetLettersParams {
  return status === "all" ? withoutStatus(filters) : { ...filters, status };
}

/** A replay takes open letters only, so that it is asked without a status. */
export function withoutStatus(filters: LetterFilters): Omit<LetterFilters, "status"> {
  const rest = { ...filters };
  delete rest.status;
  return rest;
}

export function isNarrow(filters: LetterFilters): boolean {
  return Object.keys(withoutStatus(filters)).length > 0;
}
