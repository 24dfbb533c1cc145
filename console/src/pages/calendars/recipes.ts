import type { CalendarIn } from "@/api";
import { piped, quoted, type Recipe } from "@/parts/recipes";

/** Creates a calendar, or replaces its days. */
export function calendarSetting(name: string, body: CalendarIn): Recipe {
  const cli = piped(body, `horai calendars put ${quoted(name)} --file -`);
  return { method: "PUT", path: `/api/v1/calendars/${encodeURIComponent(name)}`, body, cli };
}
