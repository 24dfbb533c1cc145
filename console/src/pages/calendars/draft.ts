import type { CalendarIn, CalendarOut, Holiday } from "@/api";

export const WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
export type Weekday = (typeof WEEKDAYS)[number];

/** A calendar while it is edited: dates and hours are lines. */
export interface CalendarDraft {
  name: string;
  holidays: string;
  workdays: string;
  weekend: Weekday[];
  hours: string;
  ics: string;
}

/** A calendar to edit; without one, a new calendar whose weekend is Saturday and Sunday. */
export function draftOf(calendar: CalendarOut | null): CalendarDraft {
  return {
    name: calendar?.name ?? "",
    holidays: (calendar?.holidays ?? []).map(({ date, name }) => (name ? `${date} ${name}` : date)).join("\n"),
    workdays: (calendar?.workdays ?? []).join("\n"),
    weekend: calendar?.weekend ?? ["sat", "sun"],
    hours: Object.entries(calendar?.hours ?? {})
      .map(([day, hours]) => (day === "default" ? hours : `${day} ${hours}`))
      .join("\n"),
    ics: "",
  };
}

/** The body of the request: the whole calendar. Without hours, working days are open all day. */
export function bodyOf({ holidays, workdays, weekend, hours, ics }: CalendarDraft): CalendarIn {
  const open = hoursIn(hours);
  return {
    holidays: linesOf(holidays).map(holidayIn),
    workdays: linesOf(workdays).flatMap((line) => line.split(/[\s,]+/).filter(Boolean)),
    weekend,
    ...(open && { hours: open }),
    ...(ics.trim() && { ics }),
  };
}

function linesOf(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
}

/** A line such as `2026-10-01/2026-10-07 National Day`. */
function holidayIn(line: string): Holiday {
  const [, date = "", name = ""] = /^(\S+)\s*(.*)$/.exec(line) ?? [];
  return name ? { date, name } : { date };
}

/** Hours by weekday; a line without a weekday is for all others. Null without a line. */
export function hoursIn(text: string): Record<string, string> | null {
  const pairs = linesOf(text).map((line) => {
    const [, day = "default", hours = ""] = /^(?:([a-z]+)[\s:]+)?(.*)$/i.exec(line) ?? [];
    return [day.toLowerCase(), hours] as const;
  });
  return pairs.length === 0 ? null : Object.fromEntries(pairs);
}

/** A month as `2026-10`, and its days for the request. */
export function spanOf(month: string): { from: string; days: number } {
  const [year = 0, number = 1] = month.split("-").map(Number);
  return { from: `${month}-01`, days: new Date(Date.UTC(year, number, 0)).getUTCDate() };
}

/** The month some months later, or earlier with a negative number. */
export function monthAfter(month: string, steps: number): string {
  const [year = 0, number = 1] = month.split("-").map(Number);
  return new Date(Date.UTC(year, number - 1 + steps, 1)).toISOString().slice(0, 7);
}
