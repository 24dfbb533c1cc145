import { Alert, Grid, Group, SegmentedControl, SimpleGrid, Skeleton, Text } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { type ForecastOut, getForecast } from "@/api";
import { inWords } from "@/i18n";
import { EmptyState, ErrorView, Icon, Page, Panel, Stat, useFilters, When } from "@/parts";
import { Busiest } from "./Busiest";
import { Curve } from "./Curve";
import { HeatMap } from "./HeatMap";
import { HotSpots } from "./HotSpots";
import { minuteAt, minuteOf } from "./minutes";
import { ThisMinute } from "./ThisMinute";
import { type Outline, outlineOf, totalsOf } from "./trial";
import { useWhatIf } from "./useWhatIf";
import { WhatIf } from "./WhatIf";

const SPANS = ["24", "72", "168"] as const;
/** The server keeps an answer for a minute. */
const KEPT_MS = 60_000;

export default function ForecastPage() {
  const { t } = useTranslation(["forecast", "common", "schedules"]);
  const [filters, change] = useFilters(["hours"]);
  const hours = SPANS.find((span) => span === filters.hours) ?? "24";
  const forecast = useQuery({
    queryKey: ["forecast", hours],
    queryFn: ({ signal }) => getForecast({ hours: Number(hours) }, { signal }),
    staleTime: KEPT_MS,
    placeholderData: keepPreviousData,
  });
  const whatIf = useWhatIf(hours);
  const outline = useMemo(() => forecast.data && outlineOf(forecast.data, whatIf.answer), [forecast.data, whatIf.answer]);
  return (
    <Page
      title={t("common:page.forecast")}
      lead={t("lead")}
      actions={
        <SegmentedControl
          aria-label={t("span.label")}
          value={hours}
          onChange={(span) => change({ hours: span })}
          data={SPANS.map((span) => ({ value: span, label: t(`span.${span}`) }))}
        />
      }
    >
      <ErrorView error={forecast.error} onRetry={() => void forecast.refetch()} />
      {!forecast.error && <Numbers forecast={forecast.data} />}
      {forecast.isPending && <Skeleton height={480} />}
      {forecast.data && <WhatIf whatIf={whatIf} />}
      {forecast.data && outline && <Outlook forecast={forecast.data} outline={outline} key={outline.from + hours} />}
    </Page>
  );
}

function Numbers({ forecast }: { forecast: ForecastOut | undefined }) {
  const { t, i18n } = useTranslation("forecast");
  const number = new Intl.NumberFormat(i18n.language, { maximumFractionDigits: 1 });
  return (
    <SimpleGrid cols={{ base: 2, sm: 4 }} spacing="md">
      <Stat label={t("total")} value={forecast && number.format(forecast.total)} hint={forecast && t("computed")} />
      <Stat label={t("peak")} value={forecast && number.format(forecast.peak?.fires ?? 0)} hint={forecast?.peak && <When at={forecast.peak.at} precision="minute" />} />
      <Stat label={t("average")} value={forecast && number.format(forecast.average)} hint={t("perMinute")} />
      <Stat label={t("jobs")} value={forecast && number.format(forecast.jobs)} hint={forecast && t("schedules", { count: forecast.schedules })} />
    </SimpleGrid>
  );
}

function Outlook({ forecast, outline }: { forecast: ForecastOut; outline: Outline }) {
  const { t } = useTranslation("forecast");
  const [chosen, choose] = useState(forecast.peak ? minuteOf(outline, forecast.peak.at) : 0);
  const [opened, open] = useState<number | null>(null);
  if (forecast.total === 0 && outline.added === null) {
    return (
      <Panel p={0}>
        <EmptyState icon="forecast" title={t("empty.title")} command="horai jobs create report --cron '0 9 * * *' --url http://localhost:9000/report">
          {t("empty.explain")}
        </EmptyState>
      </Panel>
    );
  }
  return (
    <>
      {forecast.noteSaid && (
        <Alert color="gray" icon={<Icon name="info" />} role="note" p="xs">
          {inWords(forecast.noteSaid)}
        </Alert>
      )}
      <Panel title={t("map.title")} aside={<Readout outline={outline} chosen={chosen} />}>
        <HeatMap outline={outline} chosen={chosen} onChoose={choose} onOpen={open} />
        <Text size="xs" c="dimmed" mt="xs">
          {t("map.hint")}
        </Text>
      </Panel>
      {opened !== null && <ThisMinute at={minuteAt(outline, opened).toISOString()} />}
      <Panel title={t("curve.title")}>
        <Curve outline={outline} measured={forecast.highestMeasured} />
      </Panel>
      <Grid gap="lg">
        <Grid.Col span={{ base: 12, lg: 7 }}>
          <HotSpots forecast={forecast} onChoose={(at) => choose(minuteOf(outline, at))} />
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 5 }}>
          <Busiest forecast={forecast} />
        </Grid.Col>
      </Grid>
    </>
  );
}

/** The one line that says what the minute under the pointer has. */
function Readout({ outline, chosen }: { outline: Outline; chosen: number }) {
  const { t } = useTranslation("forecast");
  return (
    <Group gap="sm" wrap="nowrap">
      <Text size="sm" c="dimmed">
        <When at={minuteAt(outline, chosen).toISOString()} precision="minute" />
      </Text>
      <Text size="sm" fw={600} className="numbers" miw={72} ta="right">
        {t("fires", { count: totalsOf(outline)[chosen] ?? 0 })}
      </Text>
    </Group>
  );
}
