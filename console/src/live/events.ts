import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

const STREAM = "/api/v1/events";
const GATHER_MS = 1_000;
const POLL_MS = 5_000;
const RETRY_MS = 30_000;

/** Outdates what the server says has changed; while there is no stream, everything every 5 s. */
class LiveData {
  #stream: EventSource | undefined;
  #topics = new Set<string>();
  #gathering: ReturnType<typeof setTimeout> | undefined;
  #polling: ReturnType<typeof setInterval> | undefined;
  #retrying: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly queries: QueryClient) {}

  start(): void {
    const stream = new EventSource(STREAM);
    this.#stream = stream;
    stream.addEventListener("change", (event) => this.#note(event.data as string));
    stream.addEventListener("open", () => this.#isHeard());
    stream.addEventListener("error", () => this.#isLost(stream));
  }

  stop(): void {
    this.#stream?.close();
    clearTimeout(this.#gathering);
    clearInterval(this.#polling);
    clearTimeout(this.#retrying);
  }

  #isHeard(): void {
    const wasPolling = this.#polling !== undefined;
    clearInterval(this.#polling);
    this.#polling = undefined;
    if (wasPolling) {
      void this.queries.invalidateQueries();
    }
  }

  /** A stream that was cut connects again by itself; one that was refused does not. */
  #isLost(stream: EventSource): void {
    this.#polling ??= setInterval(() => void this.queries.invalidateQueries(), POLL_MS);
    if (stream.readyState === EventSource.CLOSED) {
      clearTimeout(this.#retrying);
      this.#retrying = setTimeout(() => this.start(), RETRY_MS);
    }
  }

  #note(data: string): void {
    for (const topic of topicsIn(data)) this.#topics.add(topic);
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined;
      for (const topic of this.#topics) void this.queries.invalidateQueries({ queryKey: [topic] });
      this.#topics.clear();
    }, GATHER_MS);
  }
}

function topicsIn(data: string): string[] {
  try {
    return (JSON.parse(data) as { topics?: string[] }).topics ?? [];
  } catch {
    return [];
  }
}

/** Keeps every query fresh as long as the shell stands. */
export function useLiveData(): void {
  const queries = useQueryClient();
  useEffect(() => {
    const live = new LiveData(queries);
    live.start();
    return () => live.stop();
  }, [queries]);
}
