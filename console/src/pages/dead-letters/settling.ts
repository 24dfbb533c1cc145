import { discardLetters, type ReplayIn, replayLetters } from "@/api";
import { plus, type Skipped, skippedBy, type Tally } from "@/parts/useWork";
import { type LetterFilters, type Narrowing, narrowingOf } from "./filters";

/** The most letters that one request names. */
const MOST_NAMED = 500;

/** The letters that were selected, or all that match a filter. */
export type Meant = { ids: readonly string[] } | { filters: LetterFilters };

/** The letters as a request names them. */
export type Only = Narrowing & { ids?: string[] };

export function onlyOf(meant: Meant): Only {
  return "ids" in meant ? { ids: meant.ids.slice(0, MOST_NAMED) } : narrowingOf(meant.filters);
}

/** So many letters at a time: often enough to be seen, and to be stopped. */
export const PORTION = 250;

/**
 * Replays in portions until there are as many as wished, or no more. A repeat after a lost answer does no harm: what was
 * replayed is not open any more. With a rate it is one request, which spreads what it takes: several would begin at once.
 */
export async function* replaying(wish: ReplayIn & { limit: number }): AsyncGenerator<Tally> {
  let [done, skipped]: [number, Skipped] = [0, {}];
  for (let met = 0; met < wish.limit; ) {
    const answer = await replayLetters({ ...wish, limit: wish.rate ? wish.limit : Math.min(PORTION, wish.limit - met) });
    met += answer.matched;
    done += answer.replayed;
    skipped = plus(skipped, { needless: answer.superseded, held: answer.held });
    yield { done, ...skippedBy(skipped) };
    if (!answer.more || answer.matched === 0 || wish.rate) return;
  }
}

/** Discards all that match, a portion at a time. */
export async function* discarding(only: Only, reason: string): AsyncGenerator<Tally> {
  let done = 0;
  for (;;) {
    const answer = await discardLetters({ ...only, reason, limit: PORTION });
    done += answer.discarded;
    yield { done, left: 0 };
    if (!answer.more || answer.discarded === 0) return;
  }
}
