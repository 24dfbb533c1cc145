import type { GetInstanceCountParams, GetInstancesParams, SweepIn } from "@/api";
import { type StateName, STATES } from "@/generated/states";

/** What narrows the list down. `key` is how a key begins, `payload` a member and its value: `order.id=17`. */
export const NARROWING = ["state", "job", "queue", "key", "tag", "errorCode", "payload", "from", "to"] as const;
/** All that stands in the address. `at` is where the list begins: it hides nothing of what matches. */
export const FILTERS = [...NARROWING, "when", "order", "at"] as const;
export type InstanceFilters = Partial<Record<(typeof FILTERS)[number], string>>;

export const VIEWS = ["happened", "planned", "all"] as const;
export type View = (typeof VIEWS)[number];

export function isNarrow(filters: InstanceFilters): boolean {
  return NARROWING.some((name) => filters[name]);
}

/** What has happened, until somebody chooses; a link that asks for something finds it, whenever it is. */
export function viewOf(filters: InstanceFilters): View {
  return VIEWS.find((view) => view === filters.when) ?? (isNarrow(filters) ? "all" : "happened");
}

/** Whether the oldest come first: of what is planned, that is the next. */
export function isUpwards(filters: InstanceFilters): boolean {
  return filters.order ? filters.order === "oldest" : viewOf(filters) === "planned";
}

/** What narrows it down, as the API takes it. */
function meantBy({ key, when: _when, order: _order, at: _at, ...rest }: InstanceFilters): Partial<GetInstancesParams> {
  return key ? { ...rest, keyPrefix: key } : rest;
}

function momentOf(filters: InstanceFilters): { when?: "happened" | "planned" } {
  const view = viewOf(filters);
  return view === "all" ? {} : { when: view };
}

/** The filters as the list takes them. */
export function paramsOf(filters: InstanceFilters): GetInstancesParams {
  const { at } = filters;
  return { ...meantBy(filters), ...momentOf(filters), ...(isUpwards(filters) && { order: "oldest" as const }), ...(at && { at }) };
}

/** The filters as the count takes them: where the list begins, and its order, change nothing. */
export function countedBy(filters: InstanceFilters): GetInstanceCountParams {
  return { ...meantBy(filters), ...momentOf(filters) };
}

export const LIVE = STATES.filter((state) => !state.isFinal).map((state): StateName => state.name);

/** The states of a filter that can still be cancelled; all of them where it names none. */
export function liveIn(filters: InstanceFilters): StateName[] {
  const wanted = filters.state?.split(",");
  return wanted ? LIVE.filter((state) => wanted.includes(state)) : LIVE;
}

/** Whether a filter shows what is dead. */
export function showsDead(filters: InstanceFilters): boolean {
  return !filters.state || filters.state.split(",").includes("DEAD");
}

/** What asks the server to cancel all that match, what runs only if that is wanted. */
export function cancelsOf(filters: InstanceFilters, withRunning: boolean): SweepIn {
  const states = liveIn(filters).filter((state) => withRunning || state !== "RUNNING");
  return { ...meantBy(filters), ...momentOf(filters), state: states.join(",") };
}

/** What asks the server to replay all that match and are dead. */
export function replaysOf(filters: InstanceFilters): SweepIn {
  return { ...meantBy(filters), ...momentOf(filters), state: "DEAD" };
}
