import type { ForecastOut } from "@/api";

const MINUTE_MS = 60_000;

/** The instant of a minute of a forecast. */
export function minuteAt(forecast: Pick<ForecastOut, "from">, index: number): Date {
  return new Date(new Date(forecast.from).getTime() + index * MINUTE_MS);
}

export function minuteOf(forecast: Pick<ForecastOut, "from">, at: string): number {
  return Math.round((new Date(at).getTime() - new Date(forecast.from).getTime()) / MINUTE_MS);
}
