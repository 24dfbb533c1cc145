import { expect, test } from "vitest";
import type { AttemptOut, InstanceOut } from "@/api";
import { spansOf } from "./spans";

const SECOND = 1_000;
const NINE = Date.parse("2026-11-15T09:00:00Z");
const at = (seconds: number): string => new Date(NINE + seconds * SECOND).toISOString();

function attempt(number: number, from: number, to: number | null, more: Partial<AttemptOut> = {}): AttemptOut {
  const times = { startedAt: at(from), finishedAt: to === null ? null : at(to) };
  return { attempt: number, fence: number, outcome: "FAIL", late: false, errorCode: null, errorMsg: null, progress: null, log: [], ...times, ...more };
}

function instance(more: Partial<InstanceOut>): InstanceOut {
  return { state: "SUCCESS", fireTime: at(0), createdAt: at(-60), finishedAt: null, attempts: [], ...more } as InstanceOut;
}

/** Kind, begin and length in seconds. */
const told = (shown: InstanceOut, now: number) =>
  spansOf(shown, NINE + now * SECOND).map((span) => [span.kind, (span.from - NINE) / SECOND, (span.to - span.from) / SECOND]);

test("waits, attempts and the pauses between them follow each other without a gap", () => {
  const shown = instance({ finishedAt: at(9), attempts: [attempt(1, 2, 3), attempt(2, 7, 9, { outcome: "SUCCESS" })] });

  expect(told(shown, 99)).toEqual([["wait", 0, 2], ["attempt", 2, 1], ["retry", 3, 4], ["attempt", 7, 2]]);
});

test("what goes on lasts until now", () => {
  const running = instance({ state: "RUNNING", attempts: [attempt(1, 2, null, { outcome: "RUNNING" })] });

  expect(told(running, 12)).toEqual([["wait", 0, 2], ["attempt", 2, 10]]);
  expect(told(instance({ state: "INIT" }), 5)).toEqual([["wait", 0, 5]]);
  expect(told(instance({ state: "FAIL", attempts: [attempt(1, 0, 1)] }), 5)).toEqual([["wait", 0, 0], ["attempt", 0, 1], ["retry", 1, 4]]);
});

test("before its time nothing is drawn, and a late result is no attempt of its own", () => {
  expect(told(instance({ state: "INIT" }), -5)).toEqual([]);
  const shown = instance({ finishedAt: at(2), attempts: [attempt(1, 1, 2), attempt(1, 1, 30, { late: true })] });
  expect(told(shown, 99)).toEqual([["wait", 0, 1], ["attempt", 1, 1]]);
});

test("an instance of the past that was made later begins when it was made", () => {
  const shown = instance({ createdAt: at(3_600), finishedAt: at(3_602), attempts: [attempt(1, 3_601, 3_602)] });

  expect(told(shown, 9_999)).toEqual([["wait", 3_600, 1], ["attempt", 3_601, 1]]);
});

test("the attempt of a durable function begins with its first step, although it was claimed again after a sleep", () => {
  const shown = instance({ createdAt: at(0), finishedAt: at(9), attempts: [attempt(1, 8, 9, { outcome: "SUCCESS" })] });

  expect(spansOf(shown, NINE, at(1)).map((span) => [span.kind, (span.to - span.from) / SECOND])).toEqual([["wait", 1], ["attempt", 8]]);
});
