// The outcome of an attempt, by how its function ends.

import type { AttemptRef, Report } from "./protocol.ts";

/** A retry would not help: the instance becomes a dead letter at once. */
export class Unrecoverable extends Error {
  readonly code: string;
  readonly tags: string[];

  constructor(message: string, options: { code?: string; tags?: string[] } = {}) {
    super(message);
    this.code = options.code ?? "Unrecoverable";
    this.tags = options.tags ?? [];
  }
}

/** Run again after some seconds. This does not count as a failure. */
export class RetryLater extends Error {
  readonly seconds: number;

  constructor(seconds: number) {
    super(`retry in ${seconds} s`);
    this.seconds = seconds;
  }
}

/** Return the report of a function that returned a value. */
export function reportOfValue(ref: AttemptRef, value: unknown): Report {
  const report: Report = { ...ref, result: "succeeded" };
  if (value !== undefined) report.output = value;
  return report;
}

/** Return the report of a function that threw. */
export function reportOfError(ref: AttemptRef, error: unknown): Report {
  if (error instanceof RetryLater) return { ...ref, result: "later", delay: error.seconds };
  if (error instanceof Unrecoverable) {
    return { ...ref, result: "unrecoverable", code: error.code, message: error.message, tags: error.tags };
  }
  const found = error instanceof Error ? error : new Error(String(error));
  const code = "code" in found && typeof found.code === "string" ? found.code : found.name;
  const report: Report = { ...ref, result: "failed", code, message: found.message };
  if (found.stack !== undefined) report.traceback = found.stack;
  return report;
}
