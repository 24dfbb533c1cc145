/** How instants and lengths of time are written; everything that shows one goes through here. */

const formats = new Map<string, Intl.DateTimeFormat>();

function partsOf(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone);
  if (!format) {
    format = new Intl.DateTimeFormat("en-GB", {
      timeZone: zone,
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      fractionalSecondDigits: 3,
      hourCycle: "h23",
      timeZoneName: "longOffset",
    });
    formats.set(zone, format);
  }
  return format;
}

/** The parts of an instant on the clocks of a zone. */
export function clockOf(at: Date, zone: string): Record<Intl.DateTimeFormatPartTypes, string> {
  const found = partsOf(zone).formatToParts(at);
  return Object.fromEntries(found.map((part) => [part.type, part.value])) as Record<
    Intl.DateTimeFormatPartTypes,
    string
  >;
}

/** `2026-11-15 09:00:05`, the same in every language: it aligns and sorts. */
export function formatInstant(at: Date, zone: string, precision: "minute" | "second" | "millis" = "second"): string {
  const clock = clockOf(at, zone);
  const minute = `${clock.year}-${clock.month}-${clock.day} ${clock.hour}:${clock.minute}`;
  if (precision === "minute") return minute;
  return precision === "second"
    ? `${minute}:${clock.second}`
    : `${minute}:${clock.second}.${clock.fractionalSecond}`;
}

/** `+08:00` as of an instant; UTC is `+00:00`. */
export function offsetOf(at: Date, zone: string): string {
  const name = clockOf(at, zone).timeZoneName;
  return name === "GMT" ? "+00:00" : name.replace("GMT", "");
}

/** Each unit, its length in seconds, and the smallest distance in seconds that is written in it. */
const UNITS: [Intl.RelativeTimeFormatUnit, number, number][] = [
  ["year", 31_556_952, 63_113_904],
  ["month", 2_629_746, 5_184_000],
  ["day", 86_400, 172_800],
  ["hour", 3_600, 3_600],
  ["minute", 60, 60],
];

/**
 * `3 min. ago`, `in 45 hr.`, `2 小时后`: in Chinese too, a space stands beside a number. Distances up to 48 hours are counted
 * in full hours, up to 60 days in days, up to 2 years in months, the last three rounded. Words such as "tomorrow" and "next
 * year" are not used: they name a day of the calendar, not a distance.
 */
export function formatRelative(at: Date, now: number, language: string): string {
  const seconds = Math.round((at.getTime() - now) / 1000);
  const [unit, length] = UNITS.find(([, , from]) => Math.abs(seconds) >= from) ?? ["second", 1];
  const count = Math.abs(seconds) >= 172_800 ? Math.round(seconds / length) : Math.trunc(seconds / length);
  const format = new Intl.RelativeTimeFormat(language, { numeric: count === 0 ? "auto" : "always", style: "short" });
  return format.format(count, unit).replace(/(\d)(?=\p{Script=Han})/gu, "$1 ");
}

/** `850 ms`, `4.2 s`, `3 m 05 s`, `2 h 10 m`, `4 d 6 h`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} m ${String(seconds % 60).padStart(2, "0")} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} m`;
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3_600)} h`;
}

/** The instant at which the clocks of a zone show a local time (`2026-11-15T09:00`); null where they never do. */
export function instantAt(local: string, zone: string): Date | null {
  const guess = new Date(`${local}${local.length === 16 ? ":00" : ""}Z`);
  if (Number.isNaN(guess.getTime())) return null;
  for (const probe of [guess, new Date(guess.getTime() - 86_400_000), new Date(guess.getTime() + 86_400_000)]) {
    const at = new Date(guess.getTime() - minutesOf(offsetOf(probe, zone)) * 60_000);
    if (localOf(at, zone) === localOf(guess, "UTC")) return at;
  }
  return null;
}

/** `2026-11-15T09:00:05` on the clocks of a zone. */
export function localOf(at: Date, zone: string): string {
  return formatInstant(at, zone).replace(" ", "T");
}

const LOCAL = /^\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ]\s*(\d{1,2}):(\d{2})(?::(\d{2}))?)?\s*$/;

const TIME_OF_DAY = /^\s*\d{1,2}:\d{2}(?::\d{2})?\s*$/;

/**
 * Read a typed local time; without a time of day it is midnight, and without a date it is on the day of `today`, if that is
 * given. Null where no calendar has it.
 */
export function readLocal(typed: string, today?: string): string | null {
  if (today && TIME_OF_DAY.test(typed)) return readLocal(`${today.slice(0, 10)} ${typed.trim()}`);
  const [, year, ...parts] = LOCAL.exec(typed) ?? [];
  if (!year) return null;
  const [month, day, hour, minute, second] = parts.map((part) => (part ?? "0").padStart(2, "0"));
  const local = `${year}-${month}-${day}T${hour}:${minute}:${second}`;
  const read = new Date(`${local}Z`);
  return Number.isNaN(read.getTime()) || localOf(read, "UTC") !== local ? null : local;
}

const INSTANT = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})/g;

/** A text of the server with its instants on the clocks of a zone. Two that look the same, where clocks go back, carry their offsets. */
export function withLocalTimes(text: string, zone: string): string {
  const found = new Map((text.match(INSTANT) ?? []).map((written) => [new Date(written).getTime(), formatInstant(new Date(written), zone)]));
  const shown = [...found.values()];
  return text.replace(INSTANT, (written) => {
    const at = new Date(written);
    const clock = formatInstant(at, zone);
    return shown.filter((each) => each === clock).length > 1 ? `${clock} ${offsetOf(at, zone)}` : clock;
  });
}

function minutesOf(offset: string): number {
  const [hours = 0, minutes = 0] = offset.slice(1).split(":").map(Number);
  return (offset.startsWith("-") ? -1 : 1) * (hours * 60 + minutes);
}
