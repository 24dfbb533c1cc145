import { expect, test } from "vitest";
import type { RunNodeOut, RunOut } from "@/api";
import { comparedNodes, differencesOf } from "./differences";

function node(name: string, more: Partial<RunNodeOut> = {}): RunNodeOut {
  return { name, after: [], state: "SUCCESS", attempt: 1, durationMs: 1_000, ...more } as RunNodeOut;
}

const run = (...nodes: RunNodeOut[]): RunOut => ({ nodes }) as RunOut;
const differs = (left: Partial<RunNodeOut>, right: Partial<RunNodeOut>): boolean => comparedNodes(run(node("a", left)), run(node("a", right)))[0]!.isDifferent;

test("nodes of two runs stand side by side in the order of the graph, with those that only one run has", () => {
  const found = comparedNodes(run(node("gone"), node("load")), run(node("report", { after: ["load"] }), node("load")));
  expect(found.map((one) => [one.name, one.left !== null, one.right !== null, one.isDifferent])).toEqual([
    ["load", true, true, false],
    ["report", false, true, true],
    ["gone", true, false, true],
  ]);
});

test("a node differs by its state, its attempts, or a duration that is a fifth and a tenth of a second off", () => {
  expect(differs({}, { durationMs: 1_199 })).toBe(false);
  expect(differs({}, { durationMs: 1_201 })).toBe(true);
  expect(differs({ durationMs: 10 }, { durationMs: 90 })).toBe(false);
  expect(differs({}, { state: "DEAD" })).toBe(true);
  expect(differs({}, { attempt: 2 })).toBe(true);
  expect(differs({ durationMs: null }, { durationMs: 9_000 })).toBe(false);
});

test("payloads are compared member by member, and names that every object has are no members", () => {
  expect(differencesOf({ a: 1, b: { c: [1, 2] } }, { a: 1, b: { c: [1, 3, 4] }, d: null })).toEqual([
    { path: "b.c[1]", left: 2, right: 3 },
    { path: "b.c[2]", left: undefined, right: 4 },
    { path: "d", left: undefined, right: null },
  ]);
  expect(differencesOf(null, undefined)).toEqual([]);
  expect(differencesOf({ a: [] }, { a: {} })).toEqual([{ path: "a", left: [], right: {} }]);
  expect(differencesOf({}, { toString: 1 })).toEqual([{ path: "toString", left: undefined, right: 1 }]);
  expect(differencesOf(0, 1)).toEqual([{ path: "", left: 0, right: 1 }]);
  expect(differencesOf(Array.from({ length: 500 }, () => 1), [])).toHaveLength(200);
});
