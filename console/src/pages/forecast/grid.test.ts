import { expect, test } from "vitest";
import { gridOf, indexAt, placeOf, rangeOf, stepBy, strengthOf } from "./grid";

const FROM = new Date("2026-11-15T10:20:00Z");

test("a row is an hour on the clocks of the zone, also where they are half an hour off", () => {
  expect(gridOf(FROM, 1_440, "Asia/Shanghai")).toEqual({ rows: 25, shift: 20, count: 1_440 });
  expect(gridOf(FROM, 1_440, "Asia/Kolkata")).toEqual({ rows: 25, shift: 50, count: 1_440 });
});

test("places and minutes are each other's, and there is none before the first nor behind the last", () => {
  const grid = gridOf(FROM, 120, "UTC");
  for (const index of [0, 39, 40, 119]) {
    const { row, column } = placeOf(index, grid);
    expect(indexAt(row, column, grid)).toBe(index);
  }
  expect(placeOf(40, grid)).toEqual({ row: 1, column: 0 });
  expect(indexAt(0, 19, grid)).toBeNull();
  expect(indexAt(2, 20, grid)).toBeNull();
  expect(indexAt(0, 60, grid)).toBeNull();
});

test("keys step by minutes and hours, and stay inside", () => {
  const grid = gridOf(FROM, 120, "UTC");
  expect(["ArrowRight", "ArrowDown", "ArrowUp", "Home", "End", "x"].map((key) => stepBy(key, 5, grid))).toEqual([6, 65, 0, 0, 119, null]);
});

test("nothing is not painted, the most is painted fully, and little can still be seen", () => {
  const range = rangeOf([0, 1, 0, 500]);
  expect(range).toEqual([1, 500]);
  expect([0, 500].map((fires) => strengthOf(fires, range))).toEqual([0, 1]);
  expect(strengthOf(1, range)).toBeGreaterThan(0.1);
});

test("an even load shows its differences", () => {
  const range = rangeOf([60, 71, 82]);
  const [low = 0, middle = 0, high = 0] = [60, 71, 82].map((fires) => strengthOf(fires, range));
  expect(high - middle).toBeGreaterThan(0.2);
  expect(middle - low).toBeGreaterThan(0.2);
  expect([rangeOf([]), strengthOf(7, rangeOf([7, 7]))]).toEqual([[0, 0], 1]);
});
