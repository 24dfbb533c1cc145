import { useSyncExternalStore } from "react";
import { type HealthOut, schedulerHealth } from "@/api";

/** Above this the scheduler counts as degraded. */
export const DELAY_LIMIT_MS = 2_000;
/** After so many failures in a row the console only reads. */
export const READ_ONLY_AFTER = 3;

/** What is known: `health` is the last good answer, however old. */
export interface HealthReading {
  phase: "loading" | "error" | "done";
  failures: number;
  error: string | null;
  health: HealthOut | null;
  readAt: number | null;
}

const UNKNOWN: HealthReading = { phase: "loading", failures: 0, error: null, health: null, readAt: null };

/** How long to wait before the next look: 2 s, and 2 s more with each failure, up to 30 s. */
export function waitAfter(failures: number): number {
  return Math.min(30_000, 2_000 * (failures + 1));
}

/** Asks while somebody listens, and no longer: the first listener starts it, the last one stops it. */
class HealthPoller {
  #reading = UNKNOWN;
  #listeners = new Set<() => void>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #asking: AbortController | undefined;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    if (this.#listeners.size === 1) {
      void this.#poll();
    }
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) {
        this.#stop();
      }
    };
  };

  readonly read = (): HealthReading => this.#reading;

  #stop(): void {
    clearTimeout(this.#timer);
    this.#asking?.abort();
    this.#asking = undefined;
    this.#reading = UNKNOWN;
  }

  async #poll(): Promise<void> {
    const asking = new AbortController();
    this.#asking = asking;
    this.#tell({ phase: "loading" });
    try {
      const health = await schedulerHealth({ signal: asking.signal });
      if (asking.signal.aborted) return;
      this.#tell({ phase: "done", failures: 0, error: null, health, readAt: Date.now() });
    } catch (error) {
      if (asking.signal.aborted) return;
      const told = error instanceof Error ? error.message : String(error);
      this.#tell({ phase: "error", failures: this.#reading.failures + 1, error: told });
    }
    this.#timer = setTimeout(() => void this.#poll(), waitAfter(this.#reading.failures));
  }

  #tell(change: Partial<HealthReading>): void {
    this.#reading = { ...this.#reading, ...change };
    for (const listener of this.#listeners) listener();
  }
}

const poller = new HealthPoller();

/** The health of the scheduler, polled as long as anything that uses it is on the page. */
export function useHealth(): HealthReading {
  return useSyncExternalStore(poller.subscribe, poller.read);
}

/** Whether writing is off: the server has not answered several times in a row. */
export function useReadOnly(): boolean {
  return useHealth().failures >= READ_ONLY_AFTER;
}
