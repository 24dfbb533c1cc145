import { ActionIcon, Group, Stack, Table, Text } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type CalendarDay, getCalendar, getCalendarDays } from "@/api";
import { ErrorView, Icon, Panel, WideTable } from "@/parts";
import { monthAfter, spanOf, WEEKDAYS } from "./draft";
import classes from "./Month.module.css";

/** The days of a calendar, a month at a time: whether each is a working day, and why. */
export function Month({ name }: { name: string }) {
  const { t, i18n } = useTranslation("calendars");
  const [month, go] = useState(() => new Date().toISOString().slice(0, 7));
  const span = spanOf(month);
  const calendar = useQuery({ queryKey: ["calendars", "one", name], queryFn: ({ signal }) => getCalendar(name, { signal }) });
  const found = useQuery({
    queryKey: ["calendars", "days", name, month],
    queryFn: ({ signal }) => getCalendarDays(name, span, { signal }),
    placeholderData: keepPreviousData,
  });
  const title = new Intl.DateTimeFormat(i18n.language, { year: "numeric", month: "long", timeZone: "UTC" }).format(new Date(`${span.from}T00:00:00Z`));
  const jobs = calendar.data?.jobs;
  return (
    <Panel
      title={t("month.title", { name })}
      aside={
        <Group gap="xs">
          <ActionIcon variant="subtle" color="gray" aria-label={t("month.before")} onClick={() => go(monthAfter(month, -1))}>
            <Icon name="left" />
          </ActionIcon>
          <Text size="sm" fw={600} aria-live="polite">
            {title}
          </Text>
          <ActionIcon variant="subtle" color="gray" aria-label={t("month.after")} onClick={() => go(monthAfter(month, 1))}>
            <Icon name="right" />
          </ActionIcon>
        </Group>
      }
    >
      <Stack gap="sm">
        <ErrorView error={found.error ?? calendar.error} onRetry={() => void Promise.all([found.refetch(), calendar.refetch()])} />
        {typeof jobs === "number" && <Text size="sm">{t("month.jobs", { count: jobs })}</Text>}
        {found.data && <Days days={found.data.days} label={title} />}
      </Stack>
    </Panel>
  );
}

function Days({ days, label }: { days: readonly CalendarDay[]; label: string }) {
  const { t } = useTranslation("calendars");
  return (
    <WideTable minWidth={640}>
      <Table aria-label={label} layout="fixed" withColumnBorders>
        <Table.Thead>
          <Table.Tr>
            {WEEKDAYS.map((day) => (
              <Table.Th key={day}>{t(`weekday.${day}`)}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {weeksOf(days).map((week) => (
            <Table.Tr key={week.find((day) => day !== null)?.date}>
              {WEEKDAYS.map((name, place) => (
                <Day key={name} day={week[place] ?? null} />
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </WideTable>
  );
}

function Day({ day }: { day: CalendarDay | null }) {
  const { t } = useTranslation("calendars");
  if (day === null) return <Table.Td />;
  return (
    <Table.Td className={classes.day} data-kind={day.kind}>
      <Text size="sm" fw={600} className="numbers">
        {Number(day.date.slice(-2))}
      </Text>
      <Text size="xs">{t(`kind.${day.kind}`)}</Text>
      {day.name && <Text size="xs">{day.name}</Text>}
      {day.hours && <Text size="xs">{day.hours}</Text>}
    </Table.Td>
  );
}

/** The days in rows from Monday to Sunday; null where a week begins or ends in another month. */
export function weeksOf(days: readonly CalendarDay[]): (CalendarDay | null)[][] {
  const weeks: (CalendarDay | null)[][] = [];
  for (const day of days) {
    const place = WEEKDAYS.indexOf(day.weekday);
    if (place === 0 || weeks.length === 0) weeks.push(WEEKDAYS.map(() => null));
    const week = weeks.at(-1);
    if (week) week[place] = day;
  }
  return weeks;
}
