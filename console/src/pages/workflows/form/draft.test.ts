import { expect, test } from "vitest";
import { changedBy, createdBy, drawnBy, EMPTY, type NodeDraft, withChange, withNode, withoutNode, type WorkflowDraft } from "./draft";

const DRAFT: WorkflowDraft = {
  ...EMPTY,
  name: " nightly ",
  nodes: [
    { id: 1, name: "extract", job: "", after: [] },
    { id: 2, name: "report", job: "reporting", after: ["extract"], payload: { day: 1 } },
  ],
};

test("those that wait for a node follow its new name, letter by letter", () => {
  let draft = DRAFT;
  for (const name of ["extrac", "extra", "load"]) draft = withChange(draft, draft.nodes[0]!, { name });
  expect(draft.nodes[1]!.after).toEqual(["load"]);
});

test("while two nodes have the same name, a change of one leaves what waits for the other", () => {
  const twice = withChange(withNode(DRAFT), { id: 3, name: "", job: "", after: [] }, { name: "extract" });
  expect(withChange(twice, twice.nodes[2]!, { name: "other" }).nodes[1]!.after).toEqual(["extract"]);
});

test("a node that goes is not waited for any more", () => {
  expect(withoutNode(DRAFT, DRAFT.nodes[0]!).nodes).toEqual([{ id: 2, name: "report", job: "reporting", after: [], payload: { day: 1 } }]);
});

test("what is created leaves out what has no value; a change takes away by null and keeps payloads", () => {
  const onDemand = { ...DRAFT, schedule: { ...DRAFT.schedule, kind: "none" as const } };
  expect(createdBy(onDemand)).toEqual({
    name: "nightly",
    nodes: [
      { name: "extract", after: [] },
      { name: "report", job: "reporting", after: ["extract"], payload: { day: 1 } },
    ],
  });
  expect(changedBy(onDemand, onDemand)).toMatchObject({ cron: null, every: null, timezone: null, nodes: [{}, { payload: { day: 1 } }] });
});

test("only nodes that have a name are drawn, each name once", () => {
  const draft = { ...DRAFT, nodes: [...DRAFT.nodes, { id: 3, name: "", job: "", after: [] }, { id: 4, name: "report", job: "", after: [] }] };
  expect(drawnBy(draft).map((node) => node.job)).toEqual(["extract", "reporting"]);
});

test("settings are sent where they say something, and in a change only those that changed", () => {
  const settings = { ...EMPTY.settings, queue: "night", misfire: { policy: "all" as const, maxCatchup: 3 }, tags: ["finance"], payload: { day: 1 } };
  const draft = { ...DRAFT, settings };

  expect(createdBy(draft)).toMatchObject({ queue: "night", misfire: { policy: "all", maxCatchup: 3 }, tags: ["finance"], payload: { day: 1 } });
  expect(createdBy(draft)).not.toHaveProperty("overlap");
  const changed = changedBy({ ...draft, settings: { ...settings, tags: [], overlap: "skip" } }, draft);
  expect(changed).toMatchObject({ tags: null, overlap: "skip" });
  expect(changed).not.toHaveProperty("queue");
  expect(changed).not.toHaveProperty("payload");
});

test("trigger rules and retries of nodes stay as they are, and a rule is sent only where it says something", () => {
  const [first, second] = DRAFT.nodes as [NodeDraft, NodeDraft];
  const nodes = [{ ...first, triggerRule: "allDone" as const }, { ...second, triggerRule: "oneFailed" as const, retry: { maxRetry: 2 }, map: { over: "extract" } }];
  expect(createdBy({ ...DRAFT, nodes }).nodes).toEqual([
    { name: "extract", after: [] },
    { name: "report", job: "reporting", after: ["extract"], triggerRule: "oneFailed", retry: { maxRetry: 2 }, map: { over: "extract" }, payload: { day: 1 } },
  ]);
});


test("a title, an owner and a description are sent in any script, and taken away by null; the assets of nodes stay", () => {
  const settings = { ...EMPTY.settings, title: " 每日结算 ", owner: "财务", description: "失败时联系财务。" };
  const [first] = DRAFT.nodes as [NodeDraft];
  const draft = { ...DRAFT, settings, nodes: [{ ...first, produces: ["sales"] }] };

  expect(createdBy(draft)).toMatchObject({ title: "每日结算", owner: "财务", description: "失败时联系财务。", nodes: [{ produces: ["sales"] }] });
  expect(changedBy({ ...draft, settings: { ...settings, owner: "" } }, draft)).toMatchObject({ owner: null });
  expect(changedBy(draft, draft)).not.toHaveProperty("title");
});
