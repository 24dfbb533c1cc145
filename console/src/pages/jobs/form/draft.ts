import { LOCAL_ZONE } from "@/app/zones";
import type { CalendarUse, JobIn, JobOut, JobPatch, Misfire, SecretReference, Target } from "@/api";
import { kindOf, type WhenKind } from "../schedule";

/** A header value that begins with this names a secret. */
const NAMED_SECRET = "secret:";

function headerValue(text: string): string | SecretReference {
  return text.startsWith(NAMED_SECRET) ? { secret: text.slice(NAMED_SECRET.length).trim() } : text;
}

/** A named calendar is typed as one entry with letters, such as cn-workdays:after; dates have none. */
const NAMED_CALENDAR = /^([^:]*[A-Za-z][^:]*)(?::(skip|before|after))?$/;

/** The calendar of a job as entries that can be typed. */
export function calendarEntries(calendar: JobOut["calendar"]): string[] {
  if (!calendar) return [];
  return Array.isArray(calendar) ? calendar : [`${calendar.name}:${calendar.onHoliday ?? "skip"}`];
}

function calendarOf(entries: string[]): JobIn["calendar"] {
  const [, name, onHoliday] = NAMED_CALENDAR.exec(entries.length === 1 ? (entries[0] ?? "") : "") ?? [];
  if (name === undefined) return entries.length > 0 ? entries : undefined;
  return onHoliday === undefined ? { name } : { name, onHoliday: onHoliday as CalendarUse["onHoliday"] };
}

/** A header of an HTTP target, as it is typed. */
export interface HeaderRow {
  name: string;
  value: string;
}

/** A job as a form holds it: texts as they are typed; an empty one says nothing. */
export interface JobDraft {
  name: string;
  when: WhenKind;
  cron: string;
  every: string;
  isFromFinish: boolean;
  at: string;
  delay: string;
  timezone: string;
  dstGap: "shift" | "skip";
  dstOverlap: "first" | "last" | "both";
  targetType: Target["type"];
  url: string;
  method: string;
  headers: HeaderRow[];
  batchSize: string;
  handler: string;
  broker: string;
  subject: string;
  settleOn: "stored" | "reported";
  payload: unknown;
  queue: string;
  priority: NonNullable<JobIn["priority"]> | "";
  maxRetry: string;
  maxLost: string;
  retryBase: string;
  retryCap: string;
  retryJitter: string;
  timeout: string;
  misfire: Misfire["policy"];
  maxCatchup: string;
  catchupWindow: string;
  misfireAfter: string;
  overlap: NonNullable<JobIn["overlap"]>;
  jitter: string;
  calendar: string[];
  startAt: string;
  endAt: string;
  tags: string[];
  isEncrypted: boolean;
  searchPaths: string[];
  title: string;
  description: string;
  owner: string;
  keepHistory: string;
  keepDeadLetters: string;
  refresh: JobIn["refresh"];
  anchor: JobIn["anchor"];
  dialect: JobIn["dialect"];
}

export const EMPTY: JobDraft = {
  name: "",
  when: "cron",
  cron: "",
  every: "",
  isFromFinish: false,
  at: "",
  delay: "",
  timezone: LOCAL_ZONE,
  dstGap: "shift",
  dstOverlap: "first",
  targetType: "http",
  url: "",
  method: "POST",
  headers: [],
  handler: "",
  broker: "",
  subject: "",
  settleOn: "stored",
  batchSize: "",
  payload: undefined,
  queue: "",
  priority: "",
  maxRetry: "",
  maxLost: "",
  retryBase: "",
  retryCap: "",
  retryJitter: "",
  timeout: "",
  misfire: "once",
  maxCatchup: "",
  catchupWindow: "",
  misfireAfter: "",
  overlap: "allow",
  jitter: "",
  calendar: [],
  startAt: "",
  endAt: "",
  tags: [],
  isEncrypted: false,
  searchPaths: [],
  title: "",
  description: "",
  owner: "",
  keepHistory: "",
  keepDeadLetters: "",
  refresh: undefined,
  anchor: undefined,
  dialect: undefined,
};

/** The form of a job that is there. */
export function draftOf(job: JobOut): JobDraft {
  const misfire: Misfire = typeof job.misfire === "string" ? { policy: job.misfire } : job.misfire;
  return {
    ...EMPTY,
    ...timeOf(job),
    name: job.name,
    targetType: job.target.type,
    url: job.target.url ?? "",
    method: job.target.method ?? "POST",
    headers: Object.entries(job.target.headers ?? {}).map(([name, value]) => ({
      name,
      value: typeof value === "string" ? value : NAMED_SECRET + value.secret,
    })),
    batchSize: textOf(job.target.batch?.size),
    handler: job.target.handler ?? "",
    broker: job.target.broker ?? "",
    subject: job.target.subject ?? "",
    settleOn: job.target.settleOn === "reported" ? "reported" : "stored",
    payload: job.payload ?? undefined,
    queue: job.queue,
    priority: job.priority,
    maxRetry: textOf(job.retry.maxRetry),
    maxLost: textOf(job.retry.maxLost),
    retryBase: job.retry.base ?? "",
    retryCap: job.retry.cap ?? "",
    retryJitter: job.retry.jitter ?? "",
    timeout: job.timeout ?? "",
    misfire: misfire.policy,
    maxCatchup: textOf(misfire.maxCatchup),
    catchupWindow: misfire.window ?? "",
    tags: job.tags,
    isEncrypted: job.encrypted ?? false,
    searchPaths: job.searchPaths ?? [],
    title: job.title ?? "",
    description: job.description ?? "",
    owner: job.owner ?? "",
    keepHistory: job.keepHistory ?? "",
    keepDeadLetters: job.keepDeadLetters ?? "",
  };
}

function timeOf(job: JobOut): Partial<JobDraft> {
  return {
    when: kindOf(job),
    cron: job.cron ?? "",
    every: job.every ?? "",
    isFromFinish: job.everyFrom === "finish",
    at: job.at ?? "",
    delay: job.delay ?? "",
    timezone: job.timezone ?? "UTC",
    dstGap: job.dst?.gap ?? "shift",
    dstOverlap: job.dst?.overlap ?? "first",
    misfireAfter: job.misfireAfter ?? "",
    overlap: job.overlap,
    jitter: job.jitter ?? "",
    calendar: calendarEntries(job.calendar),
    startAt: job.startAt ?? "",
    endAt: job.endAt ?? "",
    refresh: job.refresh,
    anchor: job.anchor,
    dialect: job.dialect as JobIn["dialect"],
  };
}

/** A name that is free, most likely, for another job like this one. */
export function nameLike(name: string): string {
  const [, stem = name, count] = /^(.*?)_copy(\d*)$/.exec(name) ?? [];
  if (count === undefined) return `${name}_copy`;
  return `${stem}_copy${Number(count || 1) + 1}`;
}

/** What `POST /api/v1/jobs` takes; defaults are the server's to fill in. */
export function jobOf(draft: JobDraft): JobIn {
  const filled: JobIn = {
    name: draft.name.trim(),
    ...scheduleOf(draft),
    ...onceOf(draft),
    ...lateOf(draft),
    target: targetOf(draft),
    payload: draft.payload,
    queue: given(draft.queue),
    priority: draft.priority || undefined,
    retry: retryOf(draft),
    timeout: given(draft.timeout),
    refresh: draft.refresh ?? undefined,
    tags: draft.tags.length > 0 ? draft.tags : undefined,
    encrypted: draft.isEncrypted || undefined,
    searchPaths: draft.isEncrypted && draft.searchPaths.length > 0 ? draft.searchPaths : undefined,
    title: given(draft.title),
    description: given(draft.description),
    owner: given(draft.owner),
    keepHistory: given(draft.keepHistory),
    keepDeadLetters: given(draft.keepDeadLetters),
  };
  return withoutMissing(filled);
}

function onceOf(draft: JobDraft): Pick<JobIn, "at" | "delay"> {
  if (draft.when === "at") return { at: given(draft.at) };
  return draft.when === "delay" ? { delay: given(draft.delay) } : {};
}

/** The fields that say when: those of a preview, too. */
export function scheduleOf(draft: JobDraft) {
  if (!isRepeating(draft)) return {};
  const hasCron = draft.when === "cron";
  const hasDst = draft.dstGap !== "shift" || draft.dstOverlap !== "first";
  return withoutMissing({
    cron: hasCron ? given(draft.cron) : undefined,
    dialect: hasCron ? (draft.dialect ?? undefined) : undefined,
    every: hasCron ? undefined : given(draft.every),
    everyFrom: !hasCron && draft.isFromFinish ? ("finish" as const) : undefined,
    anchor: hasCron ? undefined : (draft.anchor ?? undefined),
    timezone: hasCron || draft.calendar.length > 0 ? given(draft.timezone) : undefined,
    dst: hasCron && hasDst ? { gap: draft.dstGap, overlap: draft.dstOverlap } : undefined,
    calendar: calendarOf(draft.calendar),
    startAt: given(draft.startAt),
    endAt: given(draft.endAt),
  });
}

/** Whether it has slots at all; otherwise nothing can be late, overlap or be spread. */
export function isRepeating(draft: Pick<JobDraft, "when">): boolean {
  return draft.when === "cron" || draft.when === "every";
}

function lateOf(draft: JobDraft): Pick<JobIn, "misfire" | "misfireAfter" | "overlap" | "jitter"> {
  if (!isRepeating(draft)) return {};
  const jitter = { jitter: given(draft.jitter) };
  if (draft.when === "every" && draft.isFromFinish) return jitter;
  return {
    ...jitter,
    misfire: misfireOf(draft),
    misfireAfter: given(draft.misfireAfter),
    overlap: draft.overlap === "allow" ? undefined : draft.overlap,
  };
}

function misfireOf(draft: JobDraft): JobIn["misfire"] {
  if (draft.misfire !== "all") return draft.misfire === "once" ? undefined : draft.misfire;
  const [maxCatchup, window] = [numberOf(draft.maxCatchup), given(draft.catchupWindow)];
  return maxCatchup === undefined && window === undefined ? "all" : withoutMissing<Misfire>({ policy: "all", maxCatchup, window });
}

function targetOf(draft: JobDraft): Target | undefined {
  if (draft.targetType === "worker") {
    const handler = given(draft.handler);
    return handler ? { type: "worker", handler } : { type: "worker" };
  }
  if (draft.targetType === "nats") {
    const settleOn = draft.settleOn === "reported" ? draft.settleOn : undefined;
    return withoutMissing<Target>({ type: "nats", broker: given(draft.broker), subject: given(draft.subject), settleOn });
  }
  const named = draft.headers.filter((row) => row.name.trim() !== "");
  const headers = named.length > 0 ? Object.fromEntries(named.map((row) => [row.name.trim(), headerValue(row.value)])) : undefined;
  const size = numberOf(draft.batchSize);
  const batch = size === undefined ? undefined : { size };
  return withoutMissing<Target>({ type: "http", url: given(draft.url), method: draft.method, headers, batch });
}

function retryOf(draft: JobDraft): JobIn["retry"] {
  const retry = withoutMissing({
    maxRetry: numberOf(draft.maxRetry),
    maxLost: numberOf(draft.maxLost),
    base: given(draft.retryBase),
    cap: given(draft.retryCap),
    jitter: given(draft.retryJitter),
  });
  return Object.keys(retry).length > 0 ? retry : undefined;
}

/** What has to be sent to make the job of `before` that of `after`: null takes a field away. */
export function patchOf(before: JobDraft, after: JobDraft): JobPatch {
  const old = new Map<string, unknown>(Object.entries(jobOf(before)));
  const wanted = new Map<string, unknown>(Object.entries(jobOf(after)));
  // An instance at a time of its own was made with the job; no PATCH moves it.
  const fields = new Set([...old.keys(), ...wanted.keys()].filter((field) => field !== "at" && field !== "delay"));
  const changed = [...fields].filter((field) => JSON.stringify(old.get(field)) !== JSON.stringify(wanted.get(field)));
  return Object.fromEntries(changed.map((field) => [field, wanted.get(field) ?? null]));
}

function given(text: string): string | undefined {
  return text.trim() || undefined;
}

/** What is no number is left to the server to refuse. */
function numberOf(text: string): number | undefined {
  const typed = given(text);
  return typed === undefined ? undefined : (Number.isFinite(Number(typed)) ? Number(typed) : (typed as never));
}

function textOf(number: number | null | undefined): string {
  return number === null || number === undefined ? "" : String(number);
}

function withoutMissing<T extends object>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}
