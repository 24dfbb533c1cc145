import { discardLetters, type ReplayIn, replayLetters } from "@/api";
import type { Tally } from "@/parts";
import type { LetterFilters } from "./filters";

export type Only = Omit<LetterFilters, "status">;

/** So many letters at a time: often enough to be seen, and to be stopped. */
export const PORTION = 250;

/**
 * Replays in portions until there are as many as wished, or no more. A repeat after a lost answer does no harm: what was
 * replayed is not open any more. With a rate it is one request, which spreads what it takes: several would begin at once.
 */
export async function* replaying(wish: ReplayIn & { limit: number }): AsyncGenerator<Tally> {
  const tally = { done: 0, left: 0 };
  for (let met = 0; met < wish.limit; ) {
    const answer = await replayLetters({ ...wish, limit: wish.rate ? wish.limit : Math.min(PORTION, wish.limit - met) });
    met += answer.matched;
    tally.done += answer.replayed;
    tally.left += answer.superseded + answer.held;
    yield { ...tally };
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
