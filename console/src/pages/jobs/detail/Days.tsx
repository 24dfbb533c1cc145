import { Skeleton, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type KeyboardEvent, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { type DayOut, getDays, type JobOut } from "@/api";
import { useZone } from "@/app/zones";
import { ErrorView, Panel } from "@/parts";
import classes from "./Days.module.css";
import { monthsOf, placeOf, shadeOf, stepBy } from "./days";

const WEEKDAYS = [0, 2, 4, 6] as const;
/** A Monday. */
const MONDAY = Date.UTC(2026, 0, 5);

/** The last 13 weeks of a job, a square a day; each leads to the instances of its day. */
export function Days({ job }: { job: JobOut }) {
  const { t } = useTranslation("jobs");
  const zone = useZone(job.timezone ?? null);
  const days = useQuery({
    queryKey: ["instances", "days", job.id, zone],
    queryFn: ({ signal }) => getDays(job.id, { timezone: zone }, { signal }),
  });
  return (
    <Panel
      title={t("days.title")}
      aside={
        <Text size="sm" c="dimmed" truncate>
          {zone}
        </Text>
      }
    >
      <ErrorView error={days.error} />
      {days.isPending && <Skeleton height={196} />}
      {days.data && <Calendar job={job} days={days.data.days} />}
    </Panel>
  );
}

function Calendar({ job, days }: { job: JobOut; days: readonly DayOut[] }) {
  const { t } = useTranslation("jobs");
  const tell = useWords();
  const place = useRef<HTMLDivElement>(null);
  const [chosen, choose] = useState(days.length - 1);
  const most = Math.max(...days.map((day) => day.succeeded));
  const first = days[0]!.date;
  const step = (event: KeyboardEvent): void => {
    const next = stepBy(event.key, chosen, days.length);
    if (next === null) return;
    event.preventDefault();
    place.current?.querySelectorAll("a")[next]?.focus();
  };
  return (
    <>
      <div ref={place} className={classes.map} role="group" aria-label={t("days.label")}>
        <Rulers days={days} />
        {days.map((day, index) => (
          <Link
            key={day.date}
            to="/instances"
            search={{ job: job.name, from: day.from, to: day.to } as never}
            className={classes.day}
            style={{ ...cellOf(day.date, first), ...paintOf(day, most) }}
            tabIndex={index === chosen ? 0 : -1}
            aria-label={tell(day)}
            onKeyDown={step}
            onFocus={() => choose(index)}
            onPointerEnter={() => choose(index)}
          />
        ))}
      </div>
      <Text size="xs" c="dimmed" mt="xs" mih={36} aria-hidden>
        {tell(days[chosen]!)}
      </Text>
    </>
  );
}

/** Months above, weekdays at the left. */
function Rulers({ days }: { days: readonly DayOut[] }) {
  const { i18n } = useTranslation();
  const month = new Intl.DateTimeFormat(i18n.language, { month: "short", timeZone: "UTC" });
  const weekday = new Intl.DateTimeFormat(i18n.language, { weekday: "short", timeZone: "UTC" });
  return (
    <>
      {monthsOf(days).map(([number, week]) => (
        <span key={number} style={{ gridColumn: `${week + 2} / span 3`, gridRow: 1 }} aria-hidden>
          {month.format(Date.UTC(2026, Number(number) - 1, 1))}
        </span>
      ))}
      {WEEKDAYS.map((row) => (
        <span key={row} style={{ gridColumn: 1, gridRow: row + 2 }} aria-hidden>
          {weekday.format(MONDAY + row * 86_400_000)}
        </span>
      ))}
    </>
  );
}

/** What a day came to, in words. */
function useWords(): (day: DayOut) => string {
  const { t } = useTranslation("jobs");
  return (day) => {
    const { date, succeeded, dead, cancelled, more } = day;
    const counts = [
      ...(succeeded > 0 ? [t("days.succeeded", { count: succeeded })] : []),
      ...(dead > 0 ? [t("days.dead", { count: dead })] : []),
      ...(cancelled > 0 ? [t("days.cancelled", { count: cancelled })] : []),
    ];
    const told = counts.length > 0 ? counts.join(t("days.and")) : t("days.nothing");
    return `${date}${t("days.colon")}${told}${more ? t("days.more") : ""}`;
  };
}

function cellOf(date: string, first: string) {
  const { week, weekday } = placeOf(date, first);
  return { gridColumn: week + 2, gridRow: weekday + 2 };
}

function paintOf(day: DayOut, most: number) {
  const { state, strength } = shadeOf(day, most);
  return state === null ? {} : { background: `color-mix(in srgb, var(--state-${state}-solid) ${Math.round(strength * 100)}%, var(--horai-ground))` };
}
