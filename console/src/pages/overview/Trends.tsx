import { SimpleGrid, Skeleton, Text } from "@mantine/core";
import { type ReactNode, useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { MinuteOut } from "@/api";
import { DELAY_LIMIT_MS } from "@/live";
import { ErrorView, formatDuration, Panel } from "@/parts";
import { Chart, type Series } from "@/parts/Chart";
import type { Scale } from "@/parts/scales";
import { counts, delays, gauges, growthOf, successes } from "./curves";
import { useStats } from "./stats";

const HEIGHT = 150;

interface Curve {
  name: "delay" | "throughput" | "success" | "retrying" | "letters" | "events";
  series: readonly Series[];
  format: (value: number) => string;
  limit?: number;
  scale?: Scale;
  least?: number;
  below?: ReactNode;
}

/** How the last hour went, minute by minute: delay, throughput, success; and how much waited in it. */
export function Trends() {
  const { t } = useTranslation("overview");
  const stats = useStats();
  const minutes = stats.data?.minutes;
  const times = useMemo(() => minutes?.map((minute) => new Date(minute.at).getTime() / 1_000) ?? [], [minutes]);
  const done = useDone(minutes ?? NO_MINUTES);
  const waiting = useWaiting(minutes ?? NO_MINUTES);
  return (
    <>
      <ErrorView error={stats.error} onRetry={() => void stats.refetch()} />
      <SimpleGrid cols={{ base: 1, sm: 2, md: 3 }} spacing="lg">
        {[...done, ...waiting].map(({ name, below, ...curve }) => (
          <Panel key={name} title={t(`chart.${name}`)}>
            {minutes ? (
              <Chart label={t(`chart.${name}`)} times={times} height={HEIGHT} group="overview" {...curve} />
            ) : (
              <Skeleton height={HEIGHT + 24} />
            )}
            {below && (
              <Text size="xs" c="dimmed" mt={4}>
                {below}
              </Text>
            )}
          </Panel>
        ))}
      </SimpleGrid>
    </>
  );
}

const NO_MINUTES: readonly MinuteOut[] = [];
const ACCENT = "var(--mantine-primary-color-filled)";

/** What was done. */
function useDone(minutes: readonly MinuteOut[]): Curve[] {
  const { t } = useTranslation(["overview", "common"]);
  return useMemo(
    () => [
      {
        name: "delay",
        format: formatDuration,
        limit: DELAY_LIMIT_MS,
        scale: "log",
        series: [
          { label: t("chart.p50"), colour: "var(--state-SUCCESS-solid)", values: delays(minutes, (one) => one.delayP50Ms) },
          { label: t("chart.p95"), colour: ACCENT, values: delays(minutes, (one) => one.delayP95Ms) },
          { label: t("chart.p99"), colour: "var(--state-FAIL-solid)", values: delays(minutes, (one) => one.delayP99Ms) },
        ],
      },
      {
        name: "throughput",
        format: whole,
        least: 4,
        series: [
          { label: t("chart.started"), colour: ACCENT, isFilled: true, values: counts(minutes, (one) => one.started) },
          { label: t("chart.failed"), colour: "var(--state-FAIL-solid)", values: counts(minutes, (one) => one.failed) },
          { label: t("common:state.DEAD"), colour: "var(--state-DEAD-solid)", values: counts(minutes, (one) => one.dead) },
        ],
      },
      {
        name: "success",
        format: percent,
        series: [{ label: t("chart.success"), colour: "var(--state-SUCCESS-solid)", isFilled: true, values: successes(minutes) }],
      },
    ],
    [minutes, t],
  );
}

/** How much waited. */
function useWaiting(minutes: readonly MinuteOut[]): Curve[] {
  const { t } = useTranslation("overview");
  return useMemo(() => {
    const letters = gauges(minutes, (one) => one.deadLetters);
    const gauge = { format: whole, least: 4 };
    return [
      {
        ...gauge,
        name: "retrying",
        series: [{ label: t("chart.waiting"), colour: "var(--state-FAIL-solid)", isFilled: true, values: gauges(minutes, (one) => one.retrying) }],
      },
      {
        ...gauge,
        name: "letters",
        series: [{ label: t("chart.open"), colour: "var(--state-DEAD-solid)", isFilled: true, values: letters }],
        below: <Growth by={growthOf(letters)} />,
      },
      {
        ...gauge,
        name: "events",
        series: [{ label: t("chart.parked"), colour: ACCENT, isFilled: true, values: gauges(minutes, (one) => one.parkedEvents) }],
        below: t("chart.outbox"),
      },
    ];
  }, [minutes, t]);
}

function Growth({ by }: { by: number | null }) {
  const { t } = useTranslation("overview");
  if (by === null) return null;
  if (by === 0) return t("chart.steady");
  return t(by > 0 ? "chart.grown" : "chart.shrunk", { count: Math.abs(by) });
}

function whole(value: number): string {
  return String(Math.round(value));
}

function percent(value: number): string {
  return `${Math.round(value * 100)} %`;
}
