import { expect, test } from "vitest";
import type { GridRunOut } from "@/api";
import { countIn, heightsOf, stepFrom } from "./grid";

const run = (durationMs: number | null): GridRunOut => ({ durationMs }) as GridRunOut;

test("the arrow keys lead from cell to cell and stay in the grid, with the runs above the first node", () => {
  expect(stepFrom({ row: 0, column: 0 }, "ArrowRight", 3, 5)).toEqual({ row: 0, column: 1 });
  expect(stepFrom({ row: 0, column: 4 }, "ArrowRight", 3, 5)).toEqual({ row: 0, column: 4 });
  expect(stepFrom({ row: 0, column: 2 }, "ArrowUp", 3, 5)).toEqual({ row: -1, column: 2 });
  expect(stepFrom({ row: -1, column: 2 }, "PageDown", 3, 5)).toEqual({ row: 2, column: 2 });
  expect(stepFrom({ row: 1, column: 2 }, "Home", 3, 5)).toEqual({ row: 1, column: 0 });
  expect(stepFrom({ row: 1, column: 2 }, "End", 3, 5)).toEqual({ row: 1, column: 4 });
  expect(stepFrom({ row: 1, column: 2 }, "x", 3, 5)).toBeNull();
});

test("the counts of a map fit into a cell", () => {
  expect(countIn({ total: null, done: 0 })).toBe("");
  expect(countIn({ total: 30, done: 12 })).toBe("12/30");
  expect(countIn({ total: 30, done: 30 })).toBe("30");
  expect(countIn({ total: 12_345, done: 999 })).toBe("999/12.3k");
});

test("the bar of the longest run is full, and so is that of a run that goes on", () => {
  expect(heightsOf([run(null), run(2_000), run(1_000), run(1)])).toEqual([1, 1, 0.5, 0.1]);
});
