import { Alert, Checkbox, Grid, Group, Select, Skeleton, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { getRun, getRuns, type RunOut } from "@/api";
import { useZone } from "@/app/zones";
import { Crumb, ErrorView, Facts, formatDuration, formatInstant, Go, Page, Panel, useFilters, When } from "@/parts";
import { RunChip } from "../RunChip";
import { ComparedNodes } from "./ComparedNodes";
import { comparedNodes } from "./differences";
import { Payloads } from "./Payloads";

const OFFERED = 100;

/** Two runs of a workflow side by side; which ones, and whether only differences are shown, is in the address. */
export default function ComparePage() {
  const { workflow } = useParams({ from: "/workflows/$workflow/compare" });
  const { t } = useTranslation(["workflows", "common"]);
  const [filters, change] = useFilters(["left", "right", "only"]);
  const runs = useQuery({ queryKey: ["workflows", workflow, "runs", "offered"], queryFn: ({ signal }) => getRuns(workflow, { limit: OFFERED }, { signal }) });
  const ids = runs.data?.items.map((run) => run.id) ?? [];
  const right = filters.right ?? ids.find((id) => id !== filters.left);
  const left = filters.left ?? ids[ids.indexOf(right ?? "") + 1] ?? ids.find((id) => id !== right);
  return (
    <Page
      title={t("compare.title")}
      lead={t("compare.lead")}
      above={
        <Crumb>
          <Go to="/workflows" size="sm">{t("common:page.workflows")}</Go>
          {" / "}
          <Go to="/workflows/$workflow" params={{ workflow }} size="sm">{workflow}</Go>
        </Crumb>
      }
    >
      <ErrorView error={runs.error} onRetry={() => void runs.refetch()} />
      <Group gap="md" align="flex-end">
        <RunSelect label={t("compare.left")} runs={runs.data?.items ?? []} value={left} onChange={(id) => change({ left: id, right })} />
        <RunSelect label={t("compare.right")} runs={runs.data?.items ?? []} value={right} onChange={(id) => change({ right: id, left })} />
        <Checkbox
          label={t("compare.only")}
          checked={filters.only === "differences"}
          onChange={(event) => change({ only: event.currentTarget.checked ? "differences" : undefined })}
          mb={8}
        />
      </Group>
      {left && right ? (
        <Both workflow={workflow} left={left} right={right} isShort={filters.only === "differences"} />
      ) : (
        runs.data && <Alert color="gray">{t("compare.tooFew")}</Alert>
      )}
    </Page>
  );
}

interface RunSelectProps {
  label: string;
  runs: readonly RunOut[];
  value: string | undefined;
  onChange: (id: string) => void;
}

/** A choice among the newest runs; one that the address names is offered in any case. */
function RunSelect({ label, runs, value, onChange }: RunSelectProps) {
  const { t } = useTranslation(["workflows", "common"]);
  const zone = useZone();
  const known = runs.map((run) => ({ value: run.id, label: `${run.id} · ${formatInstant(new Date(run.fireTime), zone)} · ${t(`common:state.${run.state === "PENDING" ? "INIT" : run.state}`)}` }));
  const data = value && !runs.some((run) => run.id === value) ? [{ value, label: value }, ...known] : known;
  return <Select label={label} data={data} value={value ?? null} onChange={(id) => id && onChange(id)} allowDeselect={false} searchable w={360} maw="100%" />;
}

function Both({ workflow, left, right, isShort }: { workflow: string; left: string; right: string; isShort: boolean }) {
  const { t } = useTranslation("workflows");
  const [before, after] = [useRun(workflow, left), useRun(workflow, right)];
  const nodes = useMemo(() => (before.data && after.data ? comparedNodes(before.data, after.data) : []), [before.data, after.data]);
  const error = before.error ?? after.error;
  if (error) return <ErrorView error={error} />;
  if (!before.data || !after.data) return <Skeleton height={320} />;
  return (
    <Stack gap="lg">
      <Grid gap="lg">
        {[before.data, after.data].map((run, place) => (
          <Grid.Col key={place === 0 ? "left" : "right"} span={{ base: 12, md: 6 }}>
            <Panel
              title={
                <Go to="/workflows/$workflow/runs/$run" params={{ workflow, run: run.id }} inherit>
                  {t("run.title", { id: run.id })}
                </Go>
              }
              aside={<RunChip state={run.state} />}
            >
              <Facts
                items={[
                  [t("runs.fireTime"), <When key="fire" at={run.fireTime} />],
                  [t("runs.duration"), run.durationMs !== null && formatDuration(run.durationMs)],
                  [t("run.version"), run.version],
                  [t("runs.reruns"), run.generation],
                ]}
              />
            </Panel>
          </Grid.Col>
        ))}
      </Grid>
      <ComparedNodes workflow={workflow} left={before.data} right={after.data} nodes={isShort ? nodes.filter((node) => node.isDifferent) : nodes} />
      <Payloads left={before.data} right={after.data} />
    </Stack>
  );
}

function useRun(workflow: string, id: string) {
  return useQuery({ queryKey: ["workflows", workflow, "runs", id], queryFn: ({ signal }) => getRun(workflow, id, { signal }) });
}
