export { RetryLater, Unrecoverable } from "./outcome.ts";
export type { Attempt, Handler, WorkerOptions } from "./worker.ts";
export { Worker } from "./worker.ts";
