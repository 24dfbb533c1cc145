import { cancelInstances, replayInstances, type SweepIn } from "@/api";
import { plus, type Skipped, skippedBy, type Tally } from "@/parts/useWork";
import { cancelsOf, type InstanceFilters, LIVE, replaysOf } from "./filters";

export type Verb = "cancel" | "replay";

/** Those that were ticked, or all that match a filter; and what is to become of them. */
export type Many = { verb: Verb } & ({ ids: readonly string[] } | { filters: InstanceFilters });

/** So many at a time: often enough to be seen, and to be stopped. */
export const PORTION = 500;
const CHOSEN_PORTION = 100;
/** The most that one request replays, and the most instances that it names: a rate spreads the starts of one request. */
export const MOST_RATED = 10_000;
const MOST_NAMED = 500;

/** Whether one request can replay all of them at a rate. */
export function canBeRated(many: Many): boolean {
  return many.verb === "replay" && (!("ids" in many) || many.ids.length <= MOST_NAMED);
}

/** The requests that a wish comes to: one for a filter, several for many chosen ones. */
export function wishesOf(many: Many, withRunning: boolean, portion: number = CHOSEN_PORTION): SweepIn[] {
  if ("filters" in many) return [many.verb === "cancel" ? cancelsOf(many.filters, withRunning) : replaysOf(many.filters)];
  const state = many.verb === "cancel" ? LIVE.join(",") : "DEAD";
  const wishes: SweepIn[] = [];
  for (let at = 0; at < many.ids.length; at += portion) wishes.push({ ids: many.ids.slice(at, at + portion), state });
  return wishes;
}

/** How many it would be now; nothing is changed. */
export async function countOf(many: Many, withRunning: boolean, signal: AbortSignal): Promise<{ matched: number; more: boolean }> {
  let [matched, more] = [0, false];
  for (const wish of wishesOf(many, withRunning, PORTION)) {
    const asked = { ...wish, dryRun: true };
    const told = many.verb === "cancel" ? await cancelInstances(asked, { signal }) : await replayInstances(asked, { signal });
    matched += told.matched;
    more ||= "more" in told ? told.more : told.nextCursor !== null;
  }
  return { matched, more };
}

/** Does it on the server, a portion at a time; at a rate in one request. */
export async function* sweep(many: Many, withRunning: boolean, rate = ""): AsyncGenerator<Tally> {
  let tally: Tally = { done: 0, left: 0 };
  for (const wish of wishesOf(many, withRunning, rate ? MOST_NAMED : CHOSEN_PORTION)) {
    const before = tally;
    const portions = many.verb === "cancel" ? cancelling(wish) : rate ? replayingAt(wish, rate) : replaying(wish);
    for await (const reached of portions) {
      // Named ones that the server does not speak of match no more.
      const finished = wish.ids ? Math.max(0, wish.ids.length - reached.done - reached.left) : 0;
      tally = { done: before.done + reached.done, ...skippedBy(plus(before.skipped, plus(reached.skipped, { finished }))) };
      yield tally;
    }
  }
}

/** Ends when a portion finds nothing that it may cancel. */
async function* cancelling(wish: SweepIn): AsyncGenerator<Tally> {
  let done = 0;
  for (;;) {
    const swept = await cancelInstances({ ...wish, limit: PORTION });
    done += swept.cancelled;
    yield { done, ...skippedBy({ held: swept.held }) };
    if (!swept.more || swept.cancelled === 0) return;
  }
}

async function* replayingAt(wish: SweepIn, rate: string): AsyncGenerator<Tally> {
  const swept = await replayInstances({ ...wish, rate, limit: MOST_RATED });
  yield { done: swept.replayed, ...skippedBy({ needless: swept.superseded, held: swept.held }) };
}

/** What is dead stays so when it is replayed: the next portion begins behind the last. */
async function* replaying(wish: SweepIn): AsyncGenerator<Tally> {
  let [done, skipped]: [number, Skipped] = [0, {}];
  let cursor: string | null = null;
  do {
    const swept = await replayInstances({ ...wish, limit: PORTION, ...(cursor && { cursor }) });
    done += swept.replayed;
    skipped = plus(skipped, { needless: swept.superseded, held: swept.held });
    cursor = swept.nextCursor;
    yield { done, ...skippedBy(skipped) };
  } while (cursor !== null);
}
