import { expect, test } from "vitest";
import type { RunNodeOut, RunOut } from "@/api";
import { inOrder, labelOf, scaleOf, spanOf } from "./spans";

const RUN = { createdAt: "2026-11-15T00:00:00Z" } as RunOut;
const at = (second: number): string => new Date(Date.UTC(2026, 10, 15, 0, 0, second)).toISOString();

function node(name: string, part: Partial<RunNodeOut>): RunNodeOut {
  return { name, after: [], state: "SUCCESS", startedAt: null, finishedAt: null, ...part } as RunNodeOut;
}

test("bars stand where their nodes ran within the run", () => {
  const nodes = [node("a", { startedAt: at(0), finishedAt: at(4) }), node("b", { startedAt: at(5), finishedAt: at(10) })];
  const scale = scaleOf(RUN, nodes, Date.parse(at(99)));
  expect(scale.length).toBe(10_000);
  expect(spanOf(nodes[1]!, scale, Date.parse(at(99)))).toEqual({ from: 0.5, width: 0.5 });
});

test("a bar of what runs grows up to now, and what has not begun has none", () => {
  const nodes = [node("a", { state: "RUNNING", startedAt: at(5) }), node("b", { state: "BLOCKED" })];
  const now = Date.parse(at(20));
  const scale = scaleOf(RUN, nodes, now);
  expect(spanOf(nodes[0]!, scale, now)).toEqual({ from: 0.25, width: 0.75 });
  expect(spanOf(nodes[1]!, scale, now)).toBeNull();
});

test("rows stand in the order of their beginnings, then of the graph", () => {
  const nodes = [
    node("last", { state: "BLOCKED", after: ["middle"] }),
    node("middle", { state: "BLOCKED", after: ["second"] }),
    node("second", { startedAt: at(2) }),
    node("first", { startedAt: at(1) }),
  ];
  expect(inOrder(nodes).map((each) => each.name)).toEqual(["first", "second", "middle", "last"]);
});

test("the label of a bar stands where there is room: after it, before it, or within it", () => {
  expect(labelOf(null)).toEqual({ place: "after", left: 0, right: 0 });
  expect(labelOf({ from: 0, width: 0.5 })).toEqual({ place: "after", left: 0.5, right: 0 });
  expect(labelOf({ from: 0.5, width: 0.5 })).toEqual({ place: "before", left: 0, right: 0.5 });
  expect(labelOf({ from: 0, width: 1 })).toEqual({ place: "within", left: 0, right: 0 });
});
