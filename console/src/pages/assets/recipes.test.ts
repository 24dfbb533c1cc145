import { expect, test } from "vitest";
import { bodyOf, updating } from "./recipes";

const day = { start: "2026-11-15T00:00:00Z", end: "2026-11-16T00:00:00Z" };

test("an update has the data interval that was given, on the command line too", () => {
  const body = bodyOf({ file: "a.csv" }, day);
  expect(body).toEqual({ metadata: { file: "a.csv" }, interval: day });
  expect(updating("sales", body).cli).toContain(" --interval 2026-11-15T00:00:00Z/2026-11-16T00:00:00Z");
});

test("an update without a data interval, or with half of one, has none", () => {
  expect(bodyOf(undefined, { start: "", end: "" })).toEqual({});
  expect(bodyOf(undefined, { ...day, end: "" })).toEqual({});
  expect(updating("sales", {}).cli).not.toContain("--interval");
});
