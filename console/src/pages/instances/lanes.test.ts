import { expect, test } from "vitest";
import type { StepOut } from "@/api";
import { lanesOf } from "./lanes";

function step(startedAt: string, over: Partial<StepOut> = {}): StepOut {
  return {
    kind: "STEP",
    name: "load",
    n: 1,
    state: "FINISHED",
    tries: 1,
    startedAt: `2026-03-01T08:00:${startedAt}Z`,
    finishedAt: null,
    until: null,
    errorType: null,
    errorMsg: null,
    result: null,
    resultSize: null,
    childId: null,
    childJob: null,
    childState: null,
    ...over,
  };
}

const NOW = new Date("2026-03-01T08:00:40Z").getTime();

test("records stand on one scale, and one that is open ends now", () => {
  const lanes = lanesOf([step("00", { finishedAt: "2026-03-01T08:00:10Z" }), step("20", { kind: "CALL", state: "OPEN" })], NOW);
  expect(lanes.map(({ left, width, length }) => [left, width, length])).toEqual([
    [0, 25, 10_000],
    [50, 50, 20_000],
  ]);
});

test("no records give no lanes", () => {
  expect(lanesOf([], NOW)).toEqual([]);
});
