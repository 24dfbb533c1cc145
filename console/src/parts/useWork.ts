import { useEffect, useRef, useState } from "react";

/** How far long work has come. `left` is what it met and could not do. */
export interface Tally {
  done: number;
  left: number;
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
