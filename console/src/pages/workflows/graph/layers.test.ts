import { expect, test } from "vitest";
import { layersOf } from "./layers";
import { edgesOf } from "./layout";
import { descendantsOf, type GraphNode } from "./paths";

function node(name: string, after: string[] = [], more: Partial<GraphNode> = {}): GraphNode {
  return { name, job: name, after, ...more };
}

const fan = [node("first"), ...Array.from({ length: 498 }, (_, place) => node(`n${place}`, ["first"])), node("last", Array.from({ length: 498 }, (_, place) => `n${place}`))];

test("five hundred nodes have places of their own, children behind their parents, in no time", () => {
  const began = performance.now();
  const cells = layersOf(fan);
  expect(performance.now() - began).toBeLessThan(500);
  expect(new Set([...cells.values()].map((cell) => `${cell.column} ${cell.row}`)).size).toBe(500);
  for (const each of fan) for (const parent of each.after) expect(cells.get(parent)!.column).toBeLessThan(cells.get(each.name)!.column);
});

test("a broad step is drawn in several columns, so that the graph is about as broad as it is high", () => {
  const cells = [...layersOf(fan).values()];
  const rows = Math.max(...cells.map((cell) => cell.row)) - Math.min(...cells.map((cell) => cell.row)) + 1;
  expect(rows).toBeLessThanOrEqual(23);
  expect(Math.max(...cells.map((cell) => cell.column))).toBeLessThan(30);
});

test("nodes stand near their parents: two chains do not cross", () => {
  const chains = ["a", "b"].flatMap((chain) => Array.from({ length: 5 }, (_, place) => node(`${chain}${place}`, place === 0 ? [] : [`${chain}${place - 1}`])));
  const cells = layersOf(chains.toReversed());
  const above = [0, 1, 2, 3, 4].map((place) => cells.get(`a${place}`)!.row < cells.get(`b${place}`)!.row);
  expect(new Set(above).size).toBe(1);
});

test("a circle has places as well", () => {
  expect(layersOf([node("a", ["b"]), node("b", ["a"])]).size).toBe(2);
});

test("what is behind a node of five hundred is found quickly", () => {
  const chain = Array.from({ length: 500 }, (_, place) => node(`n${place}`, place === 0 ? [] : [`n${place - 1}`]));
  const began = performance.now();
  for (let round = 0; round < 100; round += 1) expect(descendantsOf(chain, "n0").size).toBe(499);
  expect(performance.now() - began).toBeLessThan(1_000);
});

test("the line of a chosen branch, one to a skipped node and one that is held up are three kinds", () => {
  const nodes = [
    node("pick", [], { state: "SUCCESS", chosen: ["yes"] }),
    node("yes", ["pick"], { state: "DEAD" }),
    node("no", ["pick"], { state: "SKIPPED" }),
    node("after", ["yes"], { state: "BLOCKED" }),
    node("plain", ["no"], { state: "SUCCESS" }),
  ];
  expect(Object.fromEntries(edgesOf(nodes).map((edge) => [`${edge.source}-${edge.target}`, edge.className]))).toEqual({
    "pick-yes": "chosen",
    "pick-no": "skipped",
    "yes-after": "held",
    "no-plain": "skipped",
  });
});
