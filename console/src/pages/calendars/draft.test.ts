import { expect, test } from "vitest";
import type { CalendarDay, CalendarOut } from "@/api";
import { bodyOf, draftOf, hoursIn, monthAfter, spanOf, WEEKDAYS } from "./draft";
import { weeksOf } from "./Month";

const CALENDAR: CalendarOut = {
  name: "cn-workdays",
  holidays: [{ date: "2026-10-01/2026-10-07", name: "National Day" }, { date: "12-25", name: null }],
  workdays: ["2026-09-27", "2026-10-10"],
  weekend: ["fri"],
  hours: { default: "09:00-12:00,13:00-18:00", thu: "09:00-16:00" },
  version: 2,
  createdAt: "2026-11-17T00:00:00Z",
  updatedAt: "2026-11-17T00:00:00Z",
};

test("a calendar that is opened and saved keeps its days, names and hours", () => {
  expect(bodyOf(draftOf(CALENDAR))).toEqual({
    holidays: [{ date: "2026-10-01/2026-10-07", name: "National Day" }, { date: "12-25" }],
    workdays: ["2026-09-27", "2026-10-10"],
    weekend: ["fri"],
    hours: { default: "09:00-12:00,13:00-18:00", thu: "09:00-16:00" },
  });
});

test("a new calendar has Saturday and Sunday off, and no weekend is sent as an empty list", () => {
  expect(bodyOf(draftOf(null))).toEqual({ holidays: [], workdays: [], weekend: ["sat", "sun"] });
  expect(bodyOf({ ...draftOf(null), weekend: [], ics: "BEGIN:VCALENDAR" })).toEqual({ holidays: [], workdays: [], weekend: [], ics: "BEGIN:VCALENDAR" });
});

test("hours are read with and without a weekday", () => {
  expect(hoursIn("09:00-18:00\nFri: 09:00-16:00")).toEqual({ default: "09:00-18:00", fri: "09:00-16:00" });
  expect(hoursIn("  ")).toBeNull();
});

test("a month has all its days, and the next one follows over the year", () => {
  expect(spanOf("2028-02")).toEqual({ from: "2028-02-01", days: 29 });
  expect(monthAfter("2026-12", 1)).toBe("2027-01");
  expect(monthAfter("2026-01", -1)).toBe("2025-12");
});

test("the days of a month stand in weeks from Monday on", () => {
  const days = Array.from({ length: 31 }, (_, index) => ({ date: `2026-10-${String(index + 1).padStart(2, "0")}`, weekday: WEEKDAYS[(index + 3) % 7] }) as CalendarDay);
  const weeks = weeksOf(days);
  expect(weeks).toHaveLength(5);
  expect(weeks[0]?.map((day) => day?.date.slice(-2) ?? null)).toEqual([null, null, null, "01", "02", "03", "04"]);
  expect(weeks[4]?.[5]?.date).toBe("2026-10-31");
  expect(weeks[4]?.[6]).toBeNull();
});
