import type { QueueIn, QueueOut } from "@/api";
import { quoted, type Recipe } from "@/parts/recipes";
import { wishOf } from "./settings";

function pathOf(queue: string): string {
  return `/api/v1/queues/${encodeURIComponent(queue)}`;
}

export function setting(queue: string, body: QueueIn): Recipe {
  const { priority = "normal", maxConcurrency, rate, paused } = body;
  const limits = `--max-concurrency ${maxConcurrency ?? "none"} --rate ${quoted(String(rate ?? "none"))}`;
  const cli = `horai queues set ${quoted(queue)} --priority ${priority} ${limits} ${paused ? "--paused" : "--no-paused"}`;
  return { method: "PUT", path: pathOf(queue), body, cli };
}

/** Lets a queue go on that is paused, and pauses any other. */
export function holding(queue: QueueOut): Recipe {
  const cli = `horai queues ${queue.paused ? "resume" : "pause"} ${quoted(queue.name)}`;
  return { method: "PUT", path: pathOf(queue.name), body: { ...wishOf(queue), paused: !queue.paused, note: null }, cli };
}
