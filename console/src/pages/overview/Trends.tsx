import { SimpleGrid, Skeleton } from "@mantine/core";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { MinuteOut } from "@/api";
import { DELAY_LIMIT_MS } from "@/live";
import { ErrorView, formatDuration, Panel } from "@/parts";
import { Chart, type Series } from "@/parts/Chart";
import { useStats } from "./stats";

const HEIGHT = 150;

interface Curve {
  name: "delay" | "throughput" | "success";
  series: readonly Series[];
  format: (value: number) => string;
  limit?: number;
}

/** Trigger delay, throughput and success rate of the last hour, minute by minute. */
export function Trends() {
  const { t } = useTranslation("overview");
  const stats = useStats();
  const minutes = stats.data?.minutes;
  const times = useMemo(() => minutes?.map((minute) => new Date(minute.at).getTime() / 1_000) ?? [], [minutes]);
  const curves = useCurves(minutes ?? NO_MINUTES);
  return (
    <>
      <ErrorView error={stats.error} onRetry={() => void stats.refetch()} />
      <SimpleGrid cols={{ base: 1, md: 3 }} spacing="lg">
        {curves.map(({ name, ...curve }) => (
          <Panel key={name} title={t(`chart.${name}`)}>
            {minutes ? <Chart label={t(`chart.${name}`)} times={times} height={HEIGHT} {...curve} /> : <Skeleton height={HEIGHT + 24} />}
          </Panel>
        ))}
      </SimpleGrid>
    </>
  );
}

const NO_MINUTES: readonly MinuteOut[] = [];

function useCurves(minutes: readonly MinuteOut[]): Curve[] {
  const { t } = useTranslation(["overview", "common"]);
  return useMemo(() => {
    const busy = (minute: MinuteOut, value: number): number | null => (minute.started > 0 ? value : null);
    const delay = (label: string, colour: string, of: (minute: MinuteOut) => number): Series => ({
      label,
      colour,
      values: minutes.map((minute) => busy(minute, of(minute))),
    });
    return [
      {
        name: "delay",
        format: formatDuration,
        limit: DELAY_LIMIT_MS,
        series: [
          delay(t("chart.p50"), "var(--state-SUCCESS-solid)", (minute) => minute.delayP50Ms),
          delay(t("chart.p95"), "var(--mantine-primary-color-filled)", (minute) => minute.delayP95Ms),
          delay(t("chart.p99"), "var(--state-FAIL-solid)", (minute) => minute.delayP99Ms),
        ],
      },
      {
        name: "throughput",
        format: whole,
        series: [
          { label: t("chart.started"), colour: "var(--mantine-primary-color-filled)", isFilled: true, values: minutes.map((one) => one.started) },
          { label: t("chart.failed"), colour: "var(--state-FAIL-solid)", values: minutes.map((one) => one.failed) },
          { label: t("common:state.DEAD"), colour: "var(--state-DEAD-solid)", values: minutes.map((one) => one.dead) },
        ],
      },
      {
        name: "success",
        format: percent,
        series: [{ label: t("chart.success"), colour: "var(--state-SUCCESS-solid)", isFilled: true, values: minutes.map(successOf) }],
      },
    ];
  }, [minutes, t]);
}

function whole(value: number): string {
  return String(Math.round(value));
}

function percent(value: number): string {
  return `${Math.round(value * 100)} %`;
}

/** Of the attempts that ended in a minute; a minute without any says nothing. */
function successOf({ succeeded, failed }: MinuteOut): number | null {
  return succeeded + failed > 0 ? succeeded / (succeeded + failed) : null;
}
