import type { ModeIn, RuleFields, RuleFieldsKind, RuleOut, SessionOut } from "@/api";

/** The fields that each kind of rule accepts, as the server checks them. */
export const FIELDS = {
  INSTANCE_DEAD: ["job", "tag"],
  RUN_BLOCKED: ["workflow"],
  NOT_SUCCESS_BY: ["job", "by", "timezone", "weekdays", "calendar"],
  JOB_LATE: ["job", "tag", "after"],
  QUEUE_WAIT: ["queue", "after"],
  HEARTBEAT_MISSING: ["heartbeat"],
  RECONCILE_DRIFT: ["reconciler"],
  MODE_ENTERED: ["modes"],
  BUDGET_BURN: ["burnRate"],
  RUN_STUCK: ["job", "tag"],
  QUEUE_CLOGGED: ["queue"],
  SINK_PARKED: ["sink"],
  ARCHIVE_FAILED: [],
  PARTITION_MISSING: [],
} as const satisfies Record<RuleFieldsKind, readonly (keyof RuleFields)[]>;

export type RuleField = (typeof FIELDS)[RuleFieldsKind][number];

export const KINDS = Object.keys(FIELDS) as RuleFieldsKind[];
export const MODES: ModeIn["mode"][] = ["SHED_LOW", "RETRY_LIMITED", "RETRY_SHORT_FIRST", "CORE_ONLY"];
export const WEEKDAYS = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"] as const;

/** A rule while it is edited: an empty text is a field that is not set. */
export interface RuleDraft extends Record<Exclude<RuleField, "modes" | "weekdays" | "burnRate">, string> {
  name: string;
  kind: RuleFieldsKind;
  channels: string[];
  modes: string[];
  weekdays: string[];
  burnRate: number | "";
  groupWait: string;
  repeatEvery: string;
  enabled: boolean;
}

/** The kinds that the caller may create: the platform watches the cluster, and only it sees the error budget of all tenants. */
export function kindsFor(session: SessionOut | undefined): RuleFieldsKind[] {
  if (session === undefined || session.keyless) return KINDS;
  const ofPlatform = new Set<RuleFieldsKind>(["BUDGET_BURN", "ARCHIVE_FAILED", "PARTITION_MISSING"]);
  return KINDS.filter((kind) => ofPlatform.has(kind) === (session.role === "platform-admin") || kind === "MODE_ENTERED");
}

/** A rule to edit; without one, a new rule of the kind. */
export function draftOf(rule: RuleOut | null, kind: RuleFieldsKind): RuleDraft {
  return {
    name: rule?.name ?? "",
    kind: rule?.kind ?? kind,
    channels: rule?.channels ?? [],
    job: rule?.job ?? "",
    tag: rule?.tag ?? "",
    workflow: rule?.workflow ?? "",
    queue: rule?.queue ?? "",
    reconciler: rule?.reconciler ?? "",
    heartbeat: rule?.heartbeat ?? "",
    modes: rule?.modes ?? [],
    by: rule?.by ?? "",
    timezone: rule?.timezone ?? "",
    weekdays: rule?.weekdays ?? [],
    calendar: rule?.calendar ?? "",
    sink: rule?.sink ?? "",
    after: rule?.after ?? "",
    burnRate: rule?.burnRate ?? "",
    groupWait: rule?.groupWait ?? "30s",
    repeatEvery: rule?.repeatEvery ?? "4h",
    enabled: rule?.enabled ?? true,
  };
}

/** The body of the request: the fields of the kind that are set. Fields of another kind would be refused. */
export function bodyOf(draft: RuleDraft): RuleFields {
  const { kind, channels, groupWait, repeatEvery, enabled } = draft;
  const own = FIELDS[kind].map((name: RuleField) => [name, draft[name]] as const).filter(([, value]) => value !== "" && !(Array.isArray(value) && value.length === 0));
  return { kind, channels, ...Object.fromEntries(own), groupWait, repeatEvery, enabled };
}

/** The fields of a rule that narrow what it watches, such as `job=report`. */
export function watchedBy(rule: RuleOut): string {
  return FIELDS[rule.kind]
    .map((name: RuleField) => [name, rule[name]] as const)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}=${Array.isArray(value) ? value.join(",") : String(value)}`)
    .join(" ");
}
