import type { ReconcilerIn, ReconcilerOut, ReconcilerPatch, SourceIn } from "@/api";
import { LOCAL_ZONE } from "@/app/zones";
import { bodyOf, draftOf as scheduleOf, type ScheduleDraft } from "@/parts";

export interface ReconcilerDraft {
  name: string;
  job: string;
  type: "sql" | "http";
  query: string;
  /** Where the database is: a source that the operator allows, or a URL written here. */
  isByName: boolean;
  source: string;
  databaseUrl: string;
  url: string;
  headers: string;
  schedule: ScheduleDraft;
}

export const QUERY = `select key, execute_time, payload
from article
where state = 'waiting' and key > $1
order by key limit $2`;

/** What a field may look like; the same in every language. */
export const EXAMPLES = {
  name: "articles",
  source: "shop",
  databaseUrl: "postgresql://reader:…@db.example/shop",
  url: "https://shop.example/waiting",
  headers: "Authorization: Bearer …",
};

export const EMPTY: ReconcilerDraft = {
  name: "",
  job: "",
  type: "sql",
  query: QUERY,
  isByName: true,
  source: "",
  databaseUrl: "",
  url: "",
  headers: "",
  schedule: scheduleOf({ every: "5m" }, LOCAL_ZONE),
};

/** The API shows passwords and the values of headers as `***`; sent back as they are, they keep the stored values. */
export function draftOf(reconciler: ReconcilerOut): ReconcilerDraft {
  const { type, query, source, databaseUrl, url } = reconciler.source as Partial<Record<string, string>>;
  const headers = (reconciler.source["headers"] ?? {}) as Record<string, string>;
  return {
    ...EMPTY,
    name: reconciler.name,
    job: reconciler.job,
    type: type === "http" ? "http" : "sql",
    query: query ?? QUERY,
    isByName: Boolean(source) || type === "http",
    source: source ?? "",
    databaseUrl: databaseUrl ?? "",
    url: url ?? "",
    headers: Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}`)
      .join("\n"),
    schedule: scheduleOf(reconciler, LOCAL_ZONE),
  };
}

/** `Name: value` a line. */
function headersIn(text: string): Record<string, string> {
  const lines = text.split("\n").filter((line) => line.includes(":"));
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(":")).trim(), line.slice(line.indexOf(":") + 1).trim()]));
}

export function sourceOf(draft: ReconcilerDraft): SourceIn {
  if (draft.type === "http") {
    const headers = headersIn(draft.headers);
    return { type: "http", url: draft.url.trim(), ...(Object.keys(headers).length > 0 && { headers }) };
  }
  const where = draft.isByName ? { source: draft.source.trim() } : { databaseUrl: draft.databaseUrl.trim() };
  return { type: "sql", query: draft.query, ...where };
}

export function createdBy(draft: ReconcilerDraft): ReconcilerIn {
  const schedule = Object.fromEntries(Object.entries(bodyOf(draft.schedule)).filter(([, value]) => value !== null));
  return { name: draft.name.trim(), job: draft.job.trim(), source: sourceOf(draft), ...schedule };
}

/** The source is sent only where it is another: a run under way would read it from its beginning. */
export function changedBy(draft: ReconcilerDraft, before: ReconcilerDraft): ReconcilerPatch {
  const source = sourceOf(draft);
  const isSame = JSON.stringify(source) === JSON.stringify(sourceOf(before));
  return { ...bodyOf(draft.schedule), ...(!isSame && { source }) };
}
