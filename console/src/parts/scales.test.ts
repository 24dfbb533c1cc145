import { expect, test } from "vitest";
import { decadesOf, labelsOf } from "./scales";

test("the steps enclose what is shown, and one old instance adds some without pressing the others down", () => {
  expect(decadesOf(3, 2_000)).toEqual([1, 10, 100, 1_000, 10_000]);
  expect(decadesOf(3, 2_400_000)).toEqual([1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000]);
  expect(decadesOf(0, 2_000)[0]).toBe(1);
});

test("there are always two steps, whatever there is to show", () => {
  expect(decadesOf(2_000, 2_000)).toEqual([1_000, 10_000]);
  expect(decadesOf(1_000, 1_000)).toEqual([1_000, 10_000]);
  expect(decadesOf(0.5, 0.5)).toEqual([1, 10]);
  expect(decadesOf(1e12, 2e12)).toEqual([36_000_000, 864_000_000]);
});

test("where the steps are many every second one is written, the second always", () => {
  expect(labelsOf([1, 10, 100, 1_000, 10_000])).toEqual(["1 ms", "10 ms", "100 ms", "1 s", "10 s"]);
  expect(labelsOf(decadesOf(3, 2_400_000))).toEqual(["", "10 ms", "", "1 s", "", "1 m", "", "1 h"]);
});
