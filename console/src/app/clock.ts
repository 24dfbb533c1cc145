import { useSyncExternalStore } from "react";
import { localOf } from "@/parts/time";

const TICK = 1_000;
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
let now = Date.now();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, TICK);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

function read(): number {
  if (timer === undefined && Date.now() - now >= TICK) {
    now = Date.now();
  }
  return now;
}

/** The current instant in milliseconds; one clock ticks for everything that is relative to now. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, read);
}

/** The day of now on the clocks of a zone: `2026-11-15`. */
export function useToday(zone: string): string {
  return localOf(new Date(useNow()), zone).slice(0, 10);
}
