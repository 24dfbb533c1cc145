import type { GetInstancesParams, SweepIn } from "@/api";
import { type StateName, STATES } from "@/generated/states";

/** As they stand in the address. `key` is how a key begins. */
export const FILTERS = ["state", "job", "queue", "key", "tag", "errorCode", "from", "to"] as const;
export type InstanceFilters = Partial<Record<(typeof FILTERS)[number], string>>;

/** The filters as the API takes them. */
export function paramsOf({ key, ...rest }: InstanceFilters): GetInstancesParams {
  return key ? { ...rest, keyPrefix: key } : rest;
}

export function isNarrow(filters: InstanceFilters): boolean {
  return Object.keys(filters).length > 0;
}

const LIVE = STATES.filter((state) => !state.isFinal).map((state): StateName => state.name);

/** The states of a filter that can still be cancelled; all of them where it names none. */
export function liveIn(filters: InstanceFilters): StateName[] {
  const wanted = filters.state?.split(",");
  return wanted ? LIVE.filter((state) => wanted.includes(state)) : LIVE;
}

/** What asks the server to cancel all that match, what runs only if that is wanted. */
export function sweepOf(filters: InstanceFilters, withRunning: boolean): SweepIn {
  const states = liveIn(filters).filter((state) => withRunning || state !== "RUNNING");
  return { ...paramsOf(filters), state: states.join(",") } as SweepIn;
}
