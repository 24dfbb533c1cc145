import { expect, test } from "vitest";
import { nodesOf, workflowsIn } from "./links";

const WORDS = { asset: "Asset", workflow: "Workflow", job: "Job" };
const LINKS = [
  { source: "load", target: ":sales" },
  { source: ":sales", target: "nightly" },
  { source: ":sales", target: "sales" },
  { source: "nightly", target: "load" },
  { source: "nightly", target: "unrelated" },
  { source: "other", target: "unrelated" },
];

test("an asset, a workflow and a job are nodes of their own, also with the same name", () => {
  const nodes = nodesOf(LINKS, WORDS);
  expect(nodes.map(({ name, label, job, kind }) => [name, label, job, kind])).toEqual([
    ["load", "load", "Job", undefined],
    [":sales", "sales", "Asset", "asset"],
    ["nightly", "nightly", "Workflow", "workflow"],
    ["sales", "sales", "Job", undefined],
  ]);
  expect(Object.fromEntries(nodes.map(({ name, after }) => [name, after]))).toEqual({
    load: ["nightly"],
    ":sales": ["load"],
    nightly: [":sales"],
    sales: [":sales"],
  });
});

test("a workflow that only runs a job of an asset is drawn in front of it", () => {
  const nodes = nodesOf([{ source: "nightly", target: "load" }, { source: "load", target: ":sales" }], WORDS);
  expect(nodes.map(({ name, kind, after }) => [name, kind, after])).toEqual([
    ["load", undefined, ["nightly"]],
    [":sales", "asset", ["load"]],
    ["nightly", "workflow", []],
  ]);
});

test("workflows and jobs that use no asset are not drawn", () => {
  expect(nodesOf([{ source: "other", target: "unrelated" }], WORDS)).toEqual([]);
  expect([...workflowsIn(LINKS)]).toEqual(["nightly", "other"]);
});
