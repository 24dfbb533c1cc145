import { Skeleton, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { getJobInstances, type InstanceOut, type JobOut } from "@/api";
import { between, Duration, EmptyState, ErrorView, formatDuration, Go, Panel, StateChip, When } from "@/parts";
import { Chart } from "@/parts/Chart";
import { commandOf } from "../recipes";
import { withGaps } from "./gaps";
import classes from "./detail.module.css";

const LOOKED_AT = 100;
const SHOWN = 8;

/** How the last instances went: as bars, as a list, and how long they took. */
export function Recent({ job }: { job: JobOut }) {
  const { t } = useTranslation("jobs");
  const recent = useQuery({
    queryKey: ["instances", "of job", job.id],
    queryFn: ({ signal }) => getJobInstances(job.id, { limit: LOOKED_AT }, { signal }),
  });
  const items = recent.data?.items;
  return (
    <Panel
      title={t("recent.title")}
      aside={
        <Go to="/instances" search={{ job: job.name }} size="sm">
          {t("recent.all")}
        </Go>
      }
    >
      <ErrorView error={recent.error} />
      {recent.isPending && <Skeleton height={360} />}
      {items && items.length === 0 && (
        <EmptyState icon="instances" title={t("recent.none")} command={commandOf(job, "trigger")}>
          {t("recent.noneHint")}
        </EmptyState>
      )}
      {items && items.length > 0 && (
        <Stack gap="md">
          <div>
            <TallBars instances={items} />
            <div>
              {items.slice(0, SHOWN).map((instance) => (
                <Row key={instance.id} instance={instance} />
              ))}
            </div>
          </div>
          <Trend instances={items} />
        </Stack>
      )}
    </Panel>
  );
}

function Row({ instance }: { instance: InstanceOut }) {
  const { t } = useTranslation();
  return (
    <div className={classes.row}>
      <span>
        <StateChip state={instance.state} />
      </span>
      <Go to="/instances/$instance" params={{ instance: instance.id }} size="sm" title={instance.key ?? instance.id}>
        {instance.key ?? instance.id}
        {instance.reason && ` · ${t(`reason.${instance.reason}`)}`}
      </Go>
      <When at={instance.fireTime} />
      <Text size="sm" ta="right">
        <Duration ms={between(instance.startedAt, instance.finishedAt)} />
      </Text>
    </div>
  );
}

/** Newest at the right; each leads to its instance. */
function TallBars({ instances }: { instances: readonly InstanceOut[] }) {
  const { t } = useTranslation();
  const ended = instances.map((instance) => between(instance.startedAt, instance.finishedAt) ?? 0);
  const longest = Math.max(1, ...ended);
  return (
    <div className={classes.bars}>
      {instances.toReversed().map((instance) => {
        const took = between(instance.startedAt, instance.finishedAt);
        return (
          <Link
            key={instance.id}
            to="/instances/$instance"
            params={{ instance: instance.id }}
            className={classes.bar}
            aria-label={`${instance.id}: ${t(`state.${instance.state}`)}`}
            tabIndex={-1}
            style={{
              background: `var(--state-${instance.state}-solid)`,
              height: took === null ? "100%" : `${Math.round(30 + (70 * took) / longest)}%`,
            }}
          />
        );
      })}
    </div>
  );
}

function Trend({ instances }: { instances: readonly InstanceOut[] }) {
  const { t } = useTranslation("jobs");
  const { times, series } = useMemo(() => {
    const ended = instances.filter((one) => one.startedAt && one.finishedAt && one.state !== "CANCELLED");
    const points = ended
      .map((one) => [new Date(one.fireTime).getTime() / 1_000, between(one.startedAt, one.finishedAt)] as const)
      .toSorted(([first], [second]) => first - second);
    const line = { label: t("recent.duration"), colour: "var(--mantine-primary-color-filled)", isFilled: true };
    const drawn = withGaps(points);
    return { times: drawn.map(([at]) => at), series: [{ ...line, values: drawn.map(([, ms]) => ms) }] };
  }, [instances, t]);
  if (times.length < 2) return null;
  return <Chart label={t("recent.duration")} times={times} series={series} height={140} format={formatDuration} />;
}
