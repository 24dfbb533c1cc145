import type { HotSpot, MinuteForecastOut } from "@/api";

/** The jobs of the schedules that a hot spot tells of; whoever has a jitter keeps it. */
export function spreadable(spot: Pick<HotSpot, "schedules">, minute: Pick<MinuteForecastOut, "schedules">): string[] {
  const wanted = new Set(spot.schedules.map((found) => JSON.stringify(found.schedule)));
  const concerned = minute.schedules.filter((found) => wanted.has(JSON.stringify(found.schedule)));
  return [...new Set(concerned.flatMap((found) => found.names.filter((job) => job.jitter === null).map((job) => job.name)))];
}
