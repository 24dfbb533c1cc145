import { expect, test } from "vitest";
import type { Tally } from "@/parts";
import { answers, network } from "@/testing/server";
import { changing } from "../workflows/ManyRuns";
import { doing } from "./RunMany";

async function all(work: AsyncIterable<Tally>): Promise<Tally[]> {
  const gathered: Tally[] = [];
  for await (const reached of work) gathered.push(reached);
  return gathered;
}

const started = (changed: number, nextCursor: string | null, nextStart: string | null = null, reasons: object[] = []) =>
  answers({ matched: changed + reasons.length, changed, skipped: reasons.length, held: 0, reasons, nextCursor, nextStart, dryRun: false });

const rerun = (changed: number, more: boolean, nextStart: string) => answers({ matched: changed, changed, skipped: 0, held: 0, more, reasons: [], nextStart, dryRun: false });

test("many jobs are run batch by batch, each with a key of its own, from where the last one has ended", async () => {
  const calls = network("/api/v1/jobs/trigger", started(100, "abc", "2026-11-19T01:00:10Z", [{ job: "mail", reason: "no payload" }]), started(3, null, "2026-11-19T01:00:11Z"));

  const told = await all(doing("trigger", { tag: "nightly", rate: "10/s" }));

  expect(told.at(-1)).toEqual({ done: 103, left: 1, skipped: { refused: 1 }, details: ["mail: no payload"] });
  expect(calls.map((call) => call.body)).toEqual([
    { tag: "nightly", rate: "10/s", limit: 100 },
    { tag: "nightly", rate: "10/s", cursor: "abc", startAt: "2026-11-19T01:00:10Z", limit: 100 },
  ]);
  const keys = calls.map((call) => call.headers.get("Idempotency-Key"));
  expect(new Set(keys).size).toBe(2);
  expect(keys[0]).toMatch(/^console-[0-9a-f]{32}-0$/);
});

test("many jobs are deleted without a start time", async () => {
  const calls = network("/api/v1/jobs/delete", started(2, "abc"), started(0, null));

  await all(doing("delete", { names: ["a", "b", "c"] }));

  expect(calls.map((call) => call.body)).toEqual([
    { names: ["a", "b", "c"], limit: 100 },
    { names: ["a", "b", "c"], cursor: "abc", limit: 100 },
  ]);
});

test("reruns at a rate continue at the time of the next start", async () => {
  const calls = network("/api/v1/workflows/7/runs/rerun", rerun(25, true, "2026-11-19T01:00:10Z"), rerun(2, false, "2026-11-19T01:00:11Z"));

  expect((await all(changing("7", "rerun", { state: "BLOCKED" }, "10/s"))).at(-1)).toEqual({ done: 27, left: 0, details: [] });
  expect(calls.map((call) => call.body)).toEqual([
    { state: "BLOCKED", rate: "10/s", limit: 25 },
    { state: "BLOCKED", rate: "10/s", startAt: "2026-11-19T01:00:10Z", limit: 25 },
  ]);
});
