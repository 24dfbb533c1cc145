import { cancelInstance, cancelInstances, ProblemError, type SweepIn } from "@/api";
import type { Tally } from "@/parts";

const AT_ONCE = 4;
export const PORTION = 500;

/** Cancels these, some at a time; what has ended meanwhile is left over. */
export async function* cancelChosen(ids: readonly string[]): AsyncGenerator<Tally> {
  const tally = { done: 0, left: 0 };
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    const ended = await Promise.all(ids.slice(at, at + AT_ONCE).map(cancelOne));
    tally.done += ended.filter(Boolean).length;
    tally.left += ended.filter((isDone) => !isDone).length;
    yield { ...tally };
  }
}

async function cancelOne(id: string): Promise<boolean> {
  try {
    await cancelInstance(id);
    return true;
  } catch (error) {
    if (error instanceof ProblemError && error.problem.status < 500) return false;
    throw error;
  }
}

/** Cancels all that match, on the server, a portion at a time. Ends when a portion finds nothing that it may cancel. */
export async function* cancelMatching(wish: SweepIn): AsyncGenerator<Tally> {
  const tally = { done: 0, left: 0 };
  for (;;) {
    const swept = await cancelInstances({ ...wish, limit: PORTION });
    tally.done += swept.cancelled;
    tally.left = swept.held;
    yield { ...tally };
    if (!swept.more || swept.cancelled === 0) return;
  }
}
