import { expect, test } from "vitest";
import { backfillOf, flagsOf, NO_WISH, secondsAt } from "./wish";

test("what is empty is not asked for", () => {
  expect(backfillOf({ ...NO_WISH, from: "2026-11-01T00:00:00Z" })).toEqual({ from: "2026-11-01T00:00:00Z", mode: "missing" });
});

test("limits are numbers and rates, and go to the server as typed where they are none", () => {
  const wish = { ...NO_WISH, from: "a", rate: " 100/s ", maxConcurrency: "20" };
  expect(backfillOf(wish)).toEqual({ from: "a", mode: "missing", rate: "100/s", maxConcurrency: 20 });
  expect(backfillOf({ ...wish, maxConcurrency: "many" }).maxConcurrency).toBe("many");
});

test("the command line says the same", () => {
  expect(flagsOf({ from: "a", to: "b", mode: "all", rate: "5/m" })).toBe("--from a --to b --mode all --rate 5/m");
});

test("a rate tells how long it takes", () => {
  expect([secondsAt("100/s", 1_000), secondsAt("30/m", 60), secondsAt("1000/h", 500), secondsAt("5", 10)]).toEqual([10, 120, 1_800, 2]);
  expect([secondsAt("", 10), secondsAt("0/s", 10), secondsAt("fast", 10)]).toEqual([null, null, null]);
});
