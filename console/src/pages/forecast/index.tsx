import { Alert, Grid, Group, SegmentedControl, SimpleGrid, Skeleton, Text } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type ForecastOut, getForecast } from "@/api";
import { inWords } from "@/i18n";
import { EmptyState, ErrorView, Icon, Page, Panel, Stat, useFilters, When } from "@/parts";
import { Busiest } from "./Busiest";
import { HeatMap } from "./HeatMap";
import { HotSpots } from "./HotSpots";
import { minuteAt, minuteOf } from "./minutes";
import { ThisMinute } from "./ThisMinute";

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
      {forecast.data && <Outlook forecast={forecast.data} key={forecast.data.from + hours} />}
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

function Outlook({ forecast }: { forecast: ForecastOut }) {
  const { t } = useTranslation("forecast");
  const [chosen, choose] = useState(forecast.peak ? minuteOf(forecast, forecast.peak.at) : 0);
  const [opened, open] = useState<number | null>(null);
  if (forecast.total === 0) {
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
      <Panel title={t("map.title")} aside={<Readout forecast={forecast} chosen={chosen} />}>
        <HeatMap forecast={forecast} chosen={chosen} onChoose={choose} onOpen={open} />
        <Text size="xs" c="dimmed" mt="xs">
          {t("map.hint")}
        </Text>
      </Panel>
      {opened !== null && <ThisMinute at={minuteAt(forecast, opened).toISOString()} />}
      <Grid gap="lg">
        <Grid.Col span={{ base: 12, lg: 7 }}>
          <HotSpots forecast={forecast} onChoose={choose} />
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 5 }}>
          <Busiest forecast={forecast} />
        </Grid.Col>
      </Grid>
    </>
  );
}

/** The one line that says what the minute under the pointer has. */
function Readout({ forecast, chosen }: { forecast: ForecastOut; chosen: number }) {
  const { t } = useTranslation("forecast");
  return (
    <Group gap="sm" wrap="nowrap">
      <Text size="sm" c="dimmed">
        <When at={minuteAt(forecast, chosen).toISOString()} precision="minute" />
      </Text>
      <Text size="sm" fw={600} className="numbers" miw={72} ta="right">
        {t("fires", { count: forecast.perMinute[chosen] ?? 0 })}
      </Text>
    </Group>
  );
}
