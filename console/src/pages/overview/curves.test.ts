import { expect, test } from "vitest";
import type { MinuteOut } from "@/api";
import { counts, delays, gauges, growthOf, successes } from "./curves";

function minute(part: Partial<MinuteOut>): MinuteOut {
  const nothing = { started: 0, succeeded: 0, failed: 0, dead: 0, delayP50Ms: 0, delayP95Ms: 0, delayP99Ms: 0 };
  return { at: "2026-11-15T12:00:00Z", ...nothing, retrying: null, deadLetters: null, parkedEvents: null, ...part };
}

test("a minute in which nothing began has no delay, and none is shorter than the scale", () => {
  const minutes = [minute({}), minute({ started: 1, delayP95Ms: 0.5 }), minute({ started: 2, delayP95Ms: 40 }), minute({})];
  expect(delays(minutes, (one) => one.delayP95Ms)).toEqual([null, 1, 40, null]);
});

test("the success rate is of what ended", () => {
  expect(successes([minute({}), minute({ succeeded: 3, failed: 1 }), minute({})])).toEqual([null, 0.75, null]);
});

test("growth is from the first look to the last, whatever lies between", () => {
  expect(growthOf([null, 5, null, 9, null])).toBe(4);
  expect(growthOf([7, 3])).toBe(-4);
  expect(growthOf([null, 5])).toBeNull();
});

test("the minute that has only begun is left out until it is over", () => {
  expect(counts([minute({ started: 5 }), minute({ started: 7 }), minute({ started: 1 })], (one) => one.started)).toEqual([5, 7, null]);
  expect(counts([], (one) => one.started)).toEqual([]);
});

test("what was seen last holds for the few minutes in which nobody looks, and no longer", () => {
  const seen = [null, 3, null, null, null, null, null, 8].map((retrying) => minute({ retrying }));
  expect(gauges(seen, (one) => one.retrying)).toEqual([null, 3, 3, 3, 3, 3, null, 8]);
});
