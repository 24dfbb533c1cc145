import type { SinkIn, SinkInKind, SinkOut } from "@/api";

/** The fields that each kind of sink accepts, as the server checks them. */
export const FIELDS = {
  webhook: ["url", "headers", "batch"],
  nats: ["broker", "subject"],
  kafka: ["broker", "topic"],
  log: [],
} as const satisfies Record<SinkInKind, readonly (keyof SinkIn)[]>;

export type SinkField = (typeof FIELDS)[SinkInKind][number];

export const KINDS = Object.keys(FIELDS) as SinkInKind[];

/** A sink while it is edited: headers are lines such as `Authorization: Bearer x`. */
export interface SinkDraft {
  name: string;
  kind: SinkInKind;
  url: string;
  headers: string;
  broker: string;
  subject: string;
  topic: string;
  batch: number | "";
  types: string[];
}

/** A sink to edit; without one, a new webhook. `***` stands for a stored value that is not shown. */
export function draftOf(sink: SinkOut | null): SinkDraft {
  return {
    name: sink?.name ?? "",
    kind: sink?.kind ?? "webhook",
    url: sink?.url ?? "",
    headers: Object.entries(sink?.headers ?? {})
      .map(([name, value]) => `${name}: ${value}`)
      .join("\n"),
    broker: sink?.broker ?? "",
    subject: sink?.subject ?? "",
    topic: sink?.topic ?? "",
    batch: sink?.kind === "webhook" ? sink.batch : "",
    types: sink?.types ?? [],
  };
}

/** The body of the request: the fields of the kind that are set. */
export function bodyOf(draft: SinkDraft): SinkIn {
  const values = { ...draft, headers: headersIn(draft.headers) };
  const own = FIELDS[draft.kind].map((name: SinkField) => [name, values[name]] as const).filter(([, value]) => value !== "" && value !== null);
  return { kind: draft.kind, ...Object.fromEntries(own), ...(draft.types.length > 0 && { types: draft.types }) };
}

/** Headers from lines; null without one. A line without a colon is a header without a value, which the server refuses. */
export function headersIn(text: string): Record<string, string> | null {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const pairs = lines.map((line) => {
    const [name = "", ...value] = line.split(":");
    return [name.trim(), value.join(":").trim()] as const;
  });
  return pairs.length === 0 ? null : Object.fromEntries(pairs);
}

/** The place that a sink sends to. */
export function placeOf({ url, broker, subject, topic }: SinkOut): string {
  return url ?? [broker, subject ?? topic].filter(Boolean).join(" · ");
}
