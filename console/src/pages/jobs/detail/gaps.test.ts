import { expect, test } from "vitest";
import { withGaps } from "./gaps";

test("a line is broken where nothing was for far longer than usual", () => {
  expect(withGaps([[0, 5], [10, 6], [20, 7], [500, 8]])).toEqual([[0, 5], [10, 6], [20, 7], [30, null], [500, 8]]);
});

test("what comes regularly, at once or alone is left as it is", () => {
  for (const points of [[[0, 1], [10, 2], [25, 3]], [[0, 1], [0, 2], [0, 3]], [[4, 1]], []] as [number, number][][]) {
    expect(withGaps(points)).toEqual(points);
  }
});
