import { expect, test } from "vitest";
import type { QueueOut } from "@/api";
import { updating } from "@/pages/assets/recipes";
import { amendment, backfilling, cancellation, creation, deletion, hold, triggering } from "@/pages/jobs/recipes";
import { holding, setting } from "@/pages/queues/recipes";
import { curlOf, pythonOf, type Recipe, withNote } from "./recipes";

const ORIGIN = "http://127.0.0.1:8470";
const AWKWARD = `it's "so" $(late) \\ 晚了`;
const job = { name: "copied.job" };
const target = { type: "http", url: "http://127.0.0.1:9/", method: "GET" } as const;
const queue = { name: "copied.queue", priority: "high", maxConcurrency: 3, rate: "5/s", paused: false } as QueueOut;
const january = { from: "2026-01-10T00:00:00Z", to: "2026-01-10T01:00:00Z", mode: "all", rate: "100/s", maxConcurrency: 2 } as const;

const RECIPES: Record<string, Recipe> = {
  create: creation({ name: "copied.new", cron: "0 9 * * *", target, payload: { note: AWKWARD } }),
  change: amendment(job, { tags: ["copied"], payload: { note: AWKWARD } }),
  pause: withNote(hold(job, "pause"), "note", AWKWARD),
  resume: hold(job, "resume"),
  trigger: triggering(job, { note: AWKWARD }),
  triggerPlain: triggering(job, undefined),
  backfill: backfilling(job, { ...january, note: AWKWARD }),
  cancelBackfill: withNote(cancellation("4242"), "note", AWKWARD),
  delete: deletion(job),
  setQueue: setting("copied.queue", { priority: "low", maxConcurrency: 7, rate: "30/m", paused: false }),
  pauseQueue: holding(queue),
  updateAsset: updating("s3://copied/sales", { metadata: { note: AWKWARD } }),
  resumeQueue: holding({ ...queue, paused: true }),
};

/** tests/cli/test_copied.py runs every one of them against a real server. `vitest run -u` writes them anew. */
test("what is copied is what the tests of the command line run", async () => {
  const texts = Object.entries(RECIPES).map(([name, recipe]) => {
    const copied = { curl: curlOf(recipe, ORIGIN), python: pythonOf(recipe, ORIGIN), ...(recipe.cli && { cli: recipe.cli }) };
    return [name, copied] as const;
  });
  await expect(`${JSON.stringify(Object.fromEntries(texts), null, 2)}\n`).toMatchFileSnapshot("../../copied.json");
});
