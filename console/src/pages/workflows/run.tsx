import { Grid, Group, Skeleton, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { getRun, getWorkflow, type RunNodeOut, type RunOut } from "@/api";
import { between, Crumb, Duration, ErrorView, Facts, Go, GoButton, JsonView, Page, Panel, useFilters, When } from "@/parts";
import { CancelRun } from "./CancelRun";
import { NodePanel } from "./NodePanel";
import { Obstacle } from "./Obstacle";
import { RunChip } from "./RunChip";
import { Waterfall } from "./Waterfall";
import { WorkflowGraph } from "./graph";

export default function RunPage() {
  const { workflow, run: id } = useParams({ from: "/workflows/$workflow/runs/$run" });
  const { t } = useTranslation(["workflows", "common", "schedules"]);
  const run = useQuery({ queryKey: ["workflows", workflow, "runs", id], queryFn: ({ signal }) => getRun(workflow, id, { signal }) });
  return (
    <Page
      title={t("run.title", { id })}
      above={
        <Crumb>
          <Go to="/workflows" size="sm">{t("common:page.workflows")}</Go>
          {" / "}
          <Go to="/workflows/$workflow" params={{ workflow }} size="sm">
            {workflow}
          </Go>
        </Crumb>
      }
      lead={run.data && <RunChip state={run.data.state} />}
      actions={
        run.data && (
          <>
            <GoButton variant="default" to="/workflows/$workflow/compare" params={{ workflow }} search={{ right: id } as never}>
              {t("compare.act")}
            </GoButton>
            <CancelRun run={run.data} />
          </>
        )
      }
    >
      <ErrorView error={run.error} onRetry={() => void run.refetch()} />
      {run.data && <Run run={run.data} />}
      {run.isPending && <Skeleton height={400} />}
    </Page>
  );
}

function Run({ run }: { run: RunOut }) {
  const { t } = useTranslation("workflows");
  const nodes = run.nodes ?? NONE;
  const [chosen, choose] = useChosen(nodes);
  const drawn = useDrawn(run);
  const node = nodes.find((each) => each.name === chosen);
  return (
    <Stack gap="lg">
      <Obstacle run={run} nodes={nodes} onChoose={choose} />
      <Panel title={t("graph.title")}>
        <WorkflowGraph nodes={drawn} label={t("graph.label", { name: run.workflow })} chosen={chosen} onChoose={choose} />
      </Panel>
      <Grid gap="lg">
        <Grid.Col span={{ base: 12, md: 7, xl: 8 }}>
          <Stack gap="lg">
            <Panel title={t("waterfall.title")}>
              <Waterfall run={run} nodes={nodes} chosen={chosen} onChoose={choose} />
            </Panel>
            <About run={run} />
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 5, xl: 4 }}>{node && <NodePanel run={run} node={node} nodes={nodes} />}</Grid.Col>
      </Grid>
    </Stack>
  );
}

const NONE: RunNodeOut[] = [];

/** The node that is looked at, kept in the address; the one that went wrong until somebody chooses. */
function useChosen(nodes: readonly RunNodeOut[]): [string | undefined, (name: string) => void] {
  const [filters, change] = useFilters(["node"]);
  const [choose] = useState(() => (node: string) => change({ node }));
  const first = nodes.find((node) => node.state === "DEAD") ?? nodes.find((node) => node.state === "RUNNING") ?? nodes[0];
  return [filters.node ?? first?.name, choose];
}

/** A run that has not begun has no nodes yet: those of its workflow stand in for them. */
function useDrawn(run: RunOut) {
  const workflow = useQuery({
    queryKey: ["workflows", run.workflow],
    queryFn: ({ signal }) => getWorkflow(run.workflow, { signal }),
    enabled: !run.nodes,
  });
  return useMemo(
    () => run.nodes?.map((node) => ({ ...node, workflow: node.childRun?.workflow ?? null })) ?? workflow.data?.nodes ?? [],
    [run.nodes, workflow.data],
  );
}

function About({ run }: { run: RunOut }) {
  const { t } = useTranslation("workflows");
  return (
    <Panel title={t("run.about")}>
      <Facts
        items={[
          [t("runs.fireTime"), <When key="fire" at={run.fireTime} />],
          [t("run.intervalStart"), run.interval && <When key="interval" at={run.interval.start} />],
          [t("run.delay"), <Duration key="delay" ms={between(run.fireTime, run.createdAt)} />],
          [t("runs.finished"), <When key="finished" at={run.finishedAt} />],
          [t("runs.duration"), <Duration key="duration" ms={run.durationMs} />],
          [t("runs.reruns"), run.generation > 0 && run.generation],
          [t("run.version"), run.version],
          [
            t("run.parent"),
            run.parent && (
              <Go key="parent" to="/workflows/$workflow/runs/$run" params={{ workflow: run.parent.workflow, run: run.parent.runId }} search={{ node: run.parent.node } as never}>
                {t("run.parentNode", { node: run.parent.node, workflow: run.parent.workflow })}
              </Go>
            ),
          ],
          [
            t("run.starter"),
            <Go key="starter" to="/instances/$instance" params={{ instance: run.id }} className="numbers">
              {run.id}
            </Go>,
          ],
        ]}
      />
      {run.payload !== null && run.payload !== undefined && (
        <Group mt="md" grow>
          <JsonView value={run.payload} />
        </Group>
      )}
    </Panel>
  );
}
