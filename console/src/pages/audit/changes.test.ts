import { expect, test } from "vitest";
import { changesOf } from "./changes";

test("a change shows each field before and after, a batch its counts", () => {
  const before = { status: "ACTIVE", note: null };
  const after = { status: "PAUSED", note: "stock-taking" };
  expect(changesOf({ before, after, counts: null }, "none")).toBe("status: ACTIVE → PAUSED, note: none → stock-taking");
  expect(changesOf({ before: null, after: { tags: ["a"] }, counts: null }, "none")).toBe('tags: ["a"]');
  expect(changesOf({ before: null, after: null, counts: { jobs: 3 } }, "none")).toBe("jobs: 3");
});
