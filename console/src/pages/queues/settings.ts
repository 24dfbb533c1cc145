import type { QueueIn, QueueOut } from "@/api";

/** What a queue allows, as it is put: all of it, for what is left out gets its default. */
export function wishOf({ priority, maxConcurrency, rate, paused, note, title, description, owner }: QueueOut): QueueIn {
  return { priority, maxConcurrency, rate, paused, note, title, description, owner };
}

/** Changes only what was seen: somebody else's change in between is refused, not overwritten. */
export function tagOf(queue: QueueOut): { "If-Match": string } {
  return { "If-Match": `"${queue.version}"` };
}
