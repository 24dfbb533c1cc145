import type { AttemptOut, InstanceOut } from "@/api";
import type { StateName } from "@/generated/states";

/** A stretch of an instance's life; the end of what goes on is now. */
export interface Span {
  kind: "wait" | "attempt" | "retry";
  /** Of an attempt: its number and what it came to. */
  attempt: number | null;
  state: StateName | null;
  from: number;
  to: number;
  isOpen: boolean;
}

const ms = (at: string): number => new Date(at).getTime();

/** What is made for now is made a little after its time. */
const AT_ONCE_MS = 1_000;

/** When its life on the clock begins: its fire time, or when it was made, if that was clearly later. */
function beginOf(instance: InstanceOut): number {
  const [fires, made] = [ms(instance.fireTime), ms(instance.createdAt)];
  return made - fires > AT_ONCE_MS ? made : fires;
}

/**
 * Waiting, attempts, and the pauses between them, in their order. The first attempt of a durable function begins with its first
 * step, at `begunAt`. The `startedAt` of such an attempt is its last claim: each sleep and wait ends with a new one.
 */
export function spansOf(instance: InstanceOut, now: number, begunAt?: string): Span[] {
  const spans: Span[] = [];
  let reached = beginOf(instance);
  for (const attempt of inTime(instance)) {
    const told = ms(attempt.startedAt);
    const from = Math.max(reached, spans.length === 0 && begunAt ? Math.min(told, ms(begunAt)) : told);
    if (from > reached || spans.length === 0) spans.push(pause(spans, reached, from, false));
    const to = attempt.finishedAt ? Math.max(from, ms(attempt.finishedAt)) : now;
    spans.push({ kind: "attempt", attempt: attempt.attempt, state: stateOf(attempt), from, to, isOpen: !attempt.finishedAt });
    reached = to;
  }
  if (!instance.finishedAt && instance.state !== "RUNNING" && now > reached) {
    spans.push(pause(spans, reached, now, true));
  }
  return spans;
}

function pause(before: readonly Span[], from: number, to: number, isOpen: boolean): Span {
  return { kind: before.length === 0 ? "wait" : "retry", attempt: null, state: null, from, to, isOpen };
}

type Begun = AttemptOut & { startedAt: string };

/** What came too late changed nothing, and what was given back has no times. */
function inTime(instance: InstanceOut): Begun[] {
  return (instance.attempts ?? []).filter((attempt): attempt is Begun => !attempt.late && attempt.startedAt !== null);
}

/** How an attempt is painted: one that was given back or lost has not failed, and looks like one that was cancelled. */
export function stateOf(attempt: AttemptOut): StateName {
  return attempt.outcome === "RELEASED" || attempt.outcome === "LOST" ? "CANCELLED" : attempt.outcome;
}
