import type { DayOut } from "@/api";

/** Where a day stands: a column a week, a row a weekday, Monday first. */
export interface Place {
  week: number;
  weekday: number;
}

const DAY_MS = 86_400_000;

/** Days since 1970 of a date such as `2026-11-15`; a date is the same day in every zone. */
function numberOf(date: string): number {
  return Math.round(Date.parse(`${date}T00:00:00Z`) / DAY_MS);
}

/** 0 is Monday. */
function weekdayOf(date: string): number {
  return (((numberOf(date) + 3) % 7) + 7) % 7;
}

export function placeOf(date: string, first: string): Place {
  const index = numberOf(date) - numberOf(first) + weekdayOf(first);
  return { week: Math.floor(index / 7), weekday: index % 7 };
}

/** The weeks in which a month begins, with its number: `["11", 9]`. The first week has its own, unless the next follows at once. */
export function monthsOf(days: readonly Pick<DayOut, "date">[]): [string, number][] {
  const first = days[0]?.date ?? "";
  const begun = days.filter(({ date }, index) => index === 0 || date.endsWith("-01"));
  const places = begun.map(({ date }): [string, number] => [date.slice(5, 7), placeOf(date, first).week]);
  return places.filter(([, week], index) => index > 0 || (places[1]?.[1] ?? 9) - week > 1);
}

export interface Shade {
  state: "SUCCESS" | "DEAD" | "CANCELLED" | null;
  /** From 0 to 1. */
  strength: number;
}

const FAINTEST = 0.3;

/** A day on which anything died is painted as dead, by the share of it; others by how much ran. */
export function shadeOf({ succeeded, dead, cancelled }: DayOut, most: number): Shade {
  const ran = succeeded + dead;
  if (dead > 0) return { state: "DEAD", strength: FAINTEST + (1 - FAINTEST) * Math.sqrt(dead / ran) };
  if (succeeded > 0) return { state: "SUCCESS", strength: FAINTEST + (1 - FAINTEST) * Math.sqrt(succeeded / Math.max(most, 1)) };
  return cancelled > 0 ? { state: "CANCELLED", strength: FAINTEST } : { state: null, strength: 0 };
}

/** Where a key leads to: a day up and down, a week left and right, Home and End to the ends. */
export function stepBy(key: string, index: number, count: number): number | null {
  const steps: Record<string, number> = {
    ArrowUp: index - 1,
    ArrowDown: index + 1,
    ArrowLeft: index - 7,
    ArrowRight: index + 7,
    Home: 0,
    End: count - 1,
  };
  const wanted = steps[key];
  return wanted === undefined || wanted < 0 || wanted >= count ? null : wanted;
}
