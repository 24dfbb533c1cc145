import { expect, test } from "vitest";
import type { QueueOut } from "@/api";
import { channelSetting, ruleSetting, silencing } from "@/pages/alerts/recipes";
import { updating } from "@/pages/assets/recipes";
import { calendarSetting } from "@/pages/calendars/recipes";
import { applying } from "@/pages/definitions/recipes";
import { thresholdSetting } from "@/pages/governor/recipes";
import { closing, noting, opening } from "@/pages/incidents/recipes";
import { amendment, backfilling, cancellation, creation, deletion, doingMany, hold, holdingMany, triggering } from "@/pages/jobs/recipes";
import { holding, setting } from "@/pages/queues/recipes";
import { reconcilerChange, reconcilerCreation } from "@/pages/reconcilers/recipes";
import { addition, removal } from "@/pages/refresh/recipes";
import { sinkHolding, sinkSetting } from "@/pages/sinks/recipes";
import { workflowCreation } from "@/pages/workflows/recipes";
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

const mail = { kind: "email", language: "en", host: "mail.example.com", port: 587, security: "starttls", from: "horai@example.com", to: ["ops@example.com", "it@example.com"] } as const;
const dead = { kind: "INSTANCE_DEAD", channels: ["copied.mail"], job: "copied.job", groupWait: "1m", repeatEvery: "8h", enabled: false } as const;
const thresholds = { triggerDelayP95: "5s", triggerDelayFor: "10m", clearFor: "10m", runSuccessRate10m: 0.75, retryBacklog: 10_001, dlqGrowthPerMin: 1_000, minStarts: 500, minOutcomes: 200, dryRun: true };
const source = { type: "http", url: "http://127.0.0.1:9/articles" } as const;
const HOLIDAYS = [{ date: "01-01", name: AWKWARD }];

/** Of these, the Python is that of the first ones with another path and body. */
const MORE: Record<string, Recipe> = {
  setChannel: channelSetting("copied.mail", { ...mail, to: [...mail.to] }, true),
  setRule: ruleSetting("copied.rule", { ...dead, channels: [...dead.channels] }, true),
  silence: silencing({ job: "copied.job", lasts: "2h", note: AWKWARD }),
  setCalendar: calendarSetting("copied.days", { holidays: HOLIDAYS, workdays: [], weekend: ["sun"] }),
  setSink: sinkSetting("copied.sink", { kind: "webhook", url: "http://127.0.0.1:9/events", headers: { "X-Note": "it's so" }, batch: 7, types: ["horai.instance.dead", "horai.instance.done"] }),
  pauseSink: sinkHolding("copied.paused", "pause"),
  openIncident: opening({ title: AWKWARD, severity: "P1", note: AWKWARD }),
  noteIncident: noting("4242", AWKWARD),
  closeIncident: closing("4242", AWKWARD),
  setThresholds: thresholdSetting(thresholds),
  addEntities: addition({ name: "copied.refresh" }, [{ key: AWKWARD, payload: { note: AWKWARD } }, { key: "sku-1" }]),
  removeEntities: removal({ name: "copied.refresh" }, { prefix: "old-" }),
  removeNamed: removal({ name: "copied.refresh" }, { keys: ["old-1", "old-2"] }),
  apply: applying(`kind: queue\nname: copied.applied\nmaxConcurrency: 7\n`, [{ text: `{"kind":"queue","name":"copied.applied","maxConcurrency":7}` }]),
  createWorkflow: workflowCreation({ name: "copied.flow", nodes: [{ name: "first", job: "copied.job" }] }),
  createReconciler: reconcilerCreation({ name: "copied.articles", job: "copied.job", source, every: "1h" }),
  changeReconciler: reconcilerChange("copied.rows", { every: "2h" }),
  pauseTagged: holdingMany("pause", { tag: "copied.tag", note: AWKWARD }),
  pauseNamed: holdingMany("pause", { names: ["copied.one", "copied.two"], note: AWKWARD }),
  triggerTagged: doingMany("trigger", { tag: "copied.tag", payload: { note: AWKWARD }, rate: "10/s" }),
  deleteNamed: doingMany("delete", { names: ["copied.one", "copied.two"] }),
};

/** tests/cli/test_copied.py runs every one of them against a real server. `vitest run -u` writes them anew. */
test("what is copied is what the tests of the command line run", async () => {
  const texts = Object.entries(RECIPES).map(([name, recipe]) => {
    const copied = { curl: curlOf(recipe, ORIGIN), python: pythonOf(recipe, ORIGIN), ...(recipe.cli && { cli: recipe.cli }) };
    return [name, copied] as const;
  });
  const more = Object.entries(MORE).map(([name, recipe]) => [name, { curl: curlOf(recipe, ORIGIN), cli: recipe.cli }] as const);
  await expect(`${JSON.stringify(Object.fromEntries([...texts, ...more]), null, 2)}\n`).toMatchFileSnapshot("../../copied.json");
});
