import { useEffect, useRef, useState } from "react";

/** How far long work has come. `left` is what it met and could not do. */
export interface Tally {
  done: number;
  left: number;
  /** Why it could not do these: their numbers by reason. */
  skipped?: Skipped;
  /** What the server said of some of them, one by one. */
  details?: readonly string[];
}

/** Rows left alone: another operation was changing them, their work is no longer needed, they had ended, or the server refused them. */
export type Skipped = Partial<Record<"held" | "needless" | "finished" | "refused", number>>;

/** Numbers by reason, without those that are 0. */
export function skippedBy(numbers: Required<Skipped> | Skipped): { left: number; skipped?: Skipped } {
  const found = Object.entries(numbers).filter(([, number]) => number > 0);
  const left = found.reduce((sum, [, number]) => sum + number, 0);
  return left > 0 ? { left, skipped: Object.fromEntries(found) } : { left };
}

/** The sum of two. */
export function plus(one: Skipped = {}, other: Skipped = {}): Skipped {
  const sum: Skipped = { ...one };
  for (const [why, number] of Object.entries(other)) sum[why as keyof Skipped] = (sum[why as keyof Skipped] ?? 0) + number;
  return sum;
}

interface Work {
  phase: "idle" | "working" | "stopping" | "done";
  tally: Tally;
  error: unknown;
  start: (work: AsyncIterable<Tally>) => void;
  stop: () => void;
}

const NOTHING: Tally = { done: 0, left: 0 };

/** Work in portions, each of which says how far it has come; it stops between two of them, also when the page is left. */
export function useWork(onEnd?: () => void): Work {
  const [phase, setPhase] = useState<Work["phase"]>("idle");
  const [tally, setTally] = useState(NOTHING);
  const [error, setError] = useState<unknown>(null);
  const isStopped = useRef(false);
  useEffect(() => {
    isStopped.current = false;
    return () => {
      isStopped.current = true;
    };
  }, []);

  async function run(work: AsyncIterable<Tally>): Promise<void> {
    isStopped.current = false;
    setPhase("working");
    setTally(NOTHING);
    setError(null);
    try {
      for await (const reached of work) {
        setTally(reached);
        if (isStopped.current) break;
      }
    } catch (caught) {
      setError(caught);
    }
    setPhase("done");
    onEnd?.();
  }

  return {
    phase,
    tally,
    error,
    start: (work) => void run(work),
    stop: () => {
      isStopped.current = true;
      setPhase("stopping");
    },
  };
}
