import { expect, test } from "vitest";
import { formatDuration, formatInstant, formatRelative, instantAt, localOf, offsetOf } from "./time";

const AT = new Date("2026-11-15T01:00:05.250Z");

test("an instant is written on the clocks of the chosen zone, in every language alike", () => {
  expect(formatInstant(AT, "Asia/Shanghai")).toBe("2026-11-15 09:00:05");
  expect(formatInstant(AT, "UTC", "minute")).toBe("2026-11-15 01:00");
  expect(formatInstant(AT, "America/New_York", "millis")).toBe("2026-11-14 20:00:05.250");
  expect([offsetOf(AT, "UTC"), offsetOf(AT, "Asia/Kolkata")]).toEqual(["+00:00", "+05:30"]);
});

test("a local time leads back to its instant, on both sides of a change of clocks", () => {
  for (const at of ["2026-03-29T00:59:00Z", "2026-03-29T01:01:00Z", "2026-10-25T02:30:00Z", "2026-07-01T12:00:00Z"]) {
    const instant = new Date(at);
    expect(instantAt(localOf(instant, "Europe/Berlin"), "Europe/Berlin")).toEqual(instant);
  }
});

test("a local time that the clocks skip has no instant", () => {
  expect(instantAt("2026-03-29T02:30", "Europe/Berlin")).toBeNull();
  expect(instantAt("", "UTC")).toBeNull();
});

test("lengths of time are short and to the point", () => {
  expect([12.4, 4_200, 185_000, 7_800_000, 367_200_000].map(formatDuration)).toEqual([
    "12 ms",
    "4.2 s",
    "3 m 05 s",
    "2 h 10 m",
    "4 d 6 h",
  ]);
});

test("a distance of days, months and years is counted, not named by a day of the calendar", () => {
  const now = new Date("2026-11-16T05:02:00Z").getTime();
  const from = (at: string, language = "en") => formatRelative(new Date(at), now, language);
  expect(from("2026-11-18T02:30:00Z")).toBe("in 45 hr.");
  expect(from("2026-11-17T05:02:00Z")).toBe("in 24 hr.");
  expect(from("2026-11-18T05:02:00Z")).toBe("in 2 days");
  expect(from("2026-11-19T02:30:00Z")).toBe("in 3 days");
  expect(from("2026-11-10T05:00:00Z")).toBe("6 days ago");
  expect(from("2028-03-28T00:00:00Z")).toBe("in 16 mo.");
  expect(from("2030-01-01T08:00:00Z")).toBe("in 3 yr.");
  expect(from("2028-03-28T00:00:00Z", "zh-CN")).toBe("16 个月后");
  expect(from("2026-11-16T05:02:00Z")).toBe("now");
});

test("a distance from now is told in the language of the reader", () => {
  expect(formatRelative(AT, AT.getTime() + 180_000, "en")).toBe("3 min. ago");
  expect(formatRelative(AT, AT.getTime() - 7_200_000, "zh-CN")).toBe("2 小时后");
});
