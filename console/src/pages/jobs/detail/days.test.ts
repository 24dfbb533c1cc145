import { expect, test } from "vitest";
import type { DayOut } from "@/api";
import { monthsOf, placeOf, shadeOf, stepBy } from "./days";

function day(date: string, succeeded = 0, dead = 0, cancelled = 0): DayOut {
  return { date, from: "", to: "", succeeded, dead, cancelled, more: false };
}

function dates(first: string, count: number): DayOut[] {
  return Array.from({ length: count }, (_, index) => day(new Date(Date.parse(first) + index * 86_400_000).toISOString().slice(0, 10)));
}

test("a column is a week that begins on Monday", () => {
  expect(placeOf("2026-11-15", "2026-11-15")).toEqual({ week: 0, weekday: 6 });
  expect(placeOf("2026-11-16", "2026-11-15")).toEqual({ week: 1, weekday: 0 });
  expect(placeOf("2026-11-15", "2026-08-17")).toEqual({ week: 12, weekday: 6 });
});

test("a month is written where it begins, and the first one only where there is room", () => {
  expect(monthsOf(dates("2026-08-17", 91))).toEqual([["08", 0], ["09", 2], ["10", 6], ["11", 10]]);
  expect(monthsOf(dates("2026-08-30", 91))[0]).toEqual(["09", 1]);
});

test("what died is seen, however much went well; what went well is the stronger the more it was", () => {
  expect(shadeOf(day("", 999, 1), 1_000).state).toBe("DEAD");
  expect(shadeOf(day("", 0, 3), 1_000)).toEqual({ state: "DEAD", strength: 1 });
  expect(shadeOf(day("", 1_000), 1_000)).toEqual({ state: "SUCCESS", strength: 1 });
  expect(shadeOf(day("", 1), 1_000).strength).toBeGreaterThan(0.3);
  expect(shadeOf(day("", 0, 0, 2), 0).state).toBe("CANCELLED");
  expect(shadeOf(day(""), 5).state).toBeNull();
});

test("keys step by days and weeks, and stay inside", () => {
  expect(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End", "x"].map((key) => stepBy(key, 8, 14))).toEqual([7, 9, 1, null, 0, 13, null]);
});
