// The messages of the worker protocol, version 1. docs/reference/worker-protocol.md describes them.

export const PROTOCOL = 1;
export const PATH = "/api/v1/worker";

export interface AttemptRef {
  instance: string;
  fence: number;
}

export interface Hello {
  type: "hello";
  protocol: number;
  name: string;
  handlers: { name: string; concurrency?: number }[];
  credits: number;
  queues?: string[];
  holding: AttemptRef[];
  resume?: { session: string; token: string };
}

export interface Report extends AttemptRef {
  result: "succeeded" | "failed" | "unrecoverable" | "later" | "released";
  output?: unknown;
  code?: string;
  message?: string;
  tags?: string[];
  delay?: number;
  traceback?: string;
}

export interface Note extends AttemptRef {
  progress?: number;
  message?: string;
}

export type WorkerMessage =
  | Hello
  | { type: "credits"; total: number }
  | { type: "reports"; reports: Report[] }
  | { type: "progress"; notes: Note[] }
  | { type: "heartbeat" }
  | { type: "bye" };

export interface Welcome {
  type: "welcome";
  protocol: number;
  session: string;
  token: string;
  server: string;
  tenant: string;
  leaseSeconds: number;
  heartbeatSeconds: number;
  limits: { messageBytes: number; reports: number; credits: number };
  resumed?: boolean;
  unknownHandlers?: string[];
}

export interface Lease extends AttemptRef {
  attempt: number;
  handler: string;
  job: string;
  queue: string;
  fireTime: string;
  executeTime: string;
  idempotencyKey: string;
  unit: string;
  key?: string;
  payload?: unknown;
  timeoutSeconds?: number;
  retryCount?: number;
  traceparent?: string;
  intervalStart?: string;
}

export interface Answer extends AttemptRef {
  result: "settled" | "stale" | "refused";
  detail?: string;
}

export type ServerMessage =
  | Welcome
  | { type: "leases"; leases: Lease[] }
  | { type: "answers"; answers: Answer[] }
  | { type: "cancel"; attempts: AttemptRef[] }
  | { type: "drain"; graceSeconds: number }
  | { type: "error"; code: string; detail: string; hint?: string; isFatal?: boolean }
  | { type: "heartbeat" };

const KNOWN = new Set(["welcome", "leases", "answers", "cancel", "drain", "error", "heartbeat"]);

/** Read a message. Returns null for a message of a later version, which a worker ignores. */
export function readMessage(text: string): ServerMessage | null {
  const message = JSON.parse(text) as { type?: string };
  return message.type !== undefined && KNOWN.has(message.type) ? (message as ServerMessage) : null;
}

/** Return the name of an attempt in a map. */
export function nameOf(ref: AttemptRef): string {
  return `${ref.instance}/${ref.fence}`;
}
