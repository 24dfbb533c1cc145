import { describe, expect, test } from "vitest";
import { breadthOf, circleIn, descendantsOf, type GraphNode, heldBy, whyNoRerun } from "./paths";

function node(name: string, after: string[] = [], state?: GraphNode["state"]): GraphNode {
  return { name, job: name, after, ...(state && { state }) };
}

const DIAMOND = [node("a"), node("b", ["a"]), node("c", ["a"]), node("d", ["b", "c"])];

describe("a graph of nodes", () => {
  test("knows what comes behind a node, near and far", () => {
    expect([...descendantsOf(DIAMOND, "a")].toSorted()).toEqual(["b", "c", "d"]);
    expect([...descendantsOf(DIAMOND, "b")]).toEqual(["d"]);
    expect([...descendantsOf(DIAMOND, "d")]).toEqual([]);
  });

  test("names a circle of one, of two and of fifty, in the order in which they wait", () => {
    expect(circleIn([node("a", ["a"])])).toEqual(["a", "a"]);
    expect(circleIn([node("a", ["b"]), node("b", ["a"])])).toEqual(["a", "b", "a"]);
    const ring = Array.from({ length: 50 }, (_, place) => node(`n${place}`, [`n${(place + 49) % 50}`]));
    expect(circleIn(ring)).toHaveLength(51);
    expect(circleIn(DIAMOND)).toBeNull();
  });

  test("is as broad as its broadest step, and has a breadth also when it is a circle", () => {
    expect(breadthOf(DIAMOND)).toBe(2);
    expect(breadthOf([])).toBe(1);
    expect(breadthOf([node("a", ["b"]), node("b", ["a"])])).toBeGreaterThan(0);
  });
});

describe("a run of a graph", () => {
  const broken = [node("a", [], "SUCCESS"), node("b", ["a"], "DEAD"), node("c", ["a"], "SUCCESS"), node("d", ["b", "c"], "BLOCKED"), node("e", ["d"], "BLOCKED")];

  test("says of what is blocked which dead node holds it", () => {
    expect(Object.fromEntries(heldBy(broken))).toEqual({ d: ["b"], e: ["b"] });
  });

  test("does not call held what is still to come", () => {
    expect(heldBy([node("a", [], "RUNNING"), node("b", ["a"], "BLOCKED")]).size).toBe(0);
  });

  test("does not call held what runs in any case or because of a failure, nor what is behind that", () => {
    const rule = (name: string, triggerRule: NonNullable<GraphNode["triggerRule"]>): GraphNode => ({ ...node(name, ["b"], "BLOCKED"), triggerRule });
    const nodes = [node("b", [], "DEAD"), rule("clean", "allDone"), rule("alarm", "oneFailed"), rule("load", "noneFailed"), node("last", ["clean"], "BLOCKED")];
    expect(Object.fromEntries(heldBy(nodes))).toEqual({ load: ["b"] });
  });

  test("can be done again from a node whose skipped parents its rule accepts", () => {
    const nodes = [node("a", [], "SKIPPED"), node("b", ["a"], "SKIPPED"), { ...node("c", ["a"], "SUCCESS"), triggerRule: "noneFailed" as const }];
    expect(whyNoRerun(nodes, "b")).toBe("parents");
    expect(whyNoRerun(nodes, "c")).toBeNull();
  });

  test("can be done again from what died, and not from what waits for it nor while something is at work behind it", () => {
    expect(whyNoRerun(broken, "b")).toBeNull();
    expect(whyNoRerun(broken, "d")).toBe("parents");
    expect(whyNoRerun([node("a", [], "SUCCESS"), node("b", ["a"], "RUNNING")], "a")).toBe("atWork");
    expect(whyNoRerun([node("a", [], "FAIL")], "a")).toBe("atWork");
  });
});
