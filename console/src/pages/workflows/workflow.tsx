import { Alert, Group, SimpleGrid, Skeleton, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { getRun, getWorkflow, type WorkflowOut } from "@/api";
import { Act, Crumb, ErrorView, Go, GoButton, Icon, Page, Panel, ScheduleWords, Stat, Status, When } from "@/parts";
import { HistoryPanel } from "@/parts/versions/History";
import { type Asked, Dialogs } from "./dialogs";
import { RunGrid } from "./grid/RunGrid";
import { LastRunCell } from "./LastRunCell";
import { Runs } from "./Runs";
import { WorkflowGraph } from "./graph";

export default function WorkflowPage() {
  const { workflow: name } = useParams({ from: "/workflows/$workflow" });
  const { t } = useTranslation(["workflows", "common", "schedules"]);
  const [asked, ask] = useState<Asked | null>(null);
  const workflow = useQuery({ queryKey: ["workflows", name], queryFn: ({ signal }) => getWorkflow(name, { signal }) });
  return (
    <Page
      title={name}
      above={
        <Crumb>
          <Go to="/workflows" size="sm">{t("common:page.workflows")}</Go>
        </Crumb>
      }
      lead={workflow.data && <Lead workflow={workflow.data} />}
      actions={workflow.data && <Acts workflow={workflow.data} ask={ask} />}
    >
      <ErrorView error={workflow.error} onRetry={() => void workflow.refetch()} />
      {workflow.data?.description && (
        <Text size="sm" style={{ whiteSpace: "pre-line", overflowWrap: "anywhere" }} maw="80ch">
          {workflow.data.description}
        </Text>
      )}
      {workflow.data?.note && (
        <Alert color="gray" icon={<Icon name="info" />} role="note" p="xs">
          {workflow.data.note}
        </Alert>
      )}
      {!workflow.error && <Facts workflow={workflow.data} />}
      {workflow.data ? <Picture workflow={workflow.data} /> : !workflow.error && <Skeleton height={268} />}
      {workflow.data && <RunGrid workflow={workflow.data} />}
      {workflow.data && <Runs workflow={workflow.data} />}
      {workflow.data && <HistoryPanel kind="workflow" name={workflow.data.name} />}
      <Dialogs asked={asked} onClose={() => ask(null)} />
    </Page>
  );
}

function Lead({ workflow }: { workflow: WorkflowOut }) {
  const { t } = useTranslation("workflows");
  return (
    <Group gap="sm" component="span">
      {workflow.title && (
        <Text span inherit fw={600} c="var(--mantine-color-text)">
          {workflow.title}
        </Text>
      )}
      <Status status={workflow.status} />
      {workflow.owner && (
        <Go to="/workflows" search={{ owner: workflow.owner }} inherit>
          {workflow.owner}
        </Go>
      )}
      {workflow.declaredBy && t("declared", { app: workflow.declaredBy })}
    </Group>
  );
}

function Acts({ workflow, ask }: { workflow: WorkflowOut; ask: (asked: Asked) => void }) {
  const { t } = useTranslation(["workflows", "schedules"]);
  const hold = workflow.status === "PAUSED" ? "resume" : "pause";
  return (
    <>
      <Act variant="default" onClick={() => ask({ act: hold, workflow })} leftSection={<Icon name={hold === "pause" ? "pause" : "right"} size={16} />}>
        {t(`schedules:${hold}.act`)}
      </Act>
      <GoButton variant="default" to="/workflows/$workflow/edit" params={{ workflow: workflow.name }} leftSection={<Icon name="edit" size={16} />}>
        {t("act.edit")}
      </GoButton>
      <Act needs="admin" variant="default" onClick={() => ask({ act: "delete", workflow })} leftSection={<Icon name="trash" size={16} />}>
        {t("act.delete")}
      </Act>
      <Act onClick={() => ask({ act: "trigger", workflow })} leftSection={<Icon name="play" size={16} />}>
        {t("act.trigger")}
      </Act>
    </>
  );
}

function Facts({ workflow }: { workflow: WorkflowOut | undefined }) {
  const { t } = useTranslation("workflows");
  return (
    <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="md">
      <Stat
        label={t("column.schedule")}
        value={workflow && <Text fz={16} lh="32px" fw={600} truncate component="span" display="block"><ScheduleWords of={workflow} /></Text>}
        hint={workflow && [workflow.cron, workflow.timezone].filter(Boolean).join(" · ")}
      />
      <Stat
        label={t("column.next")}
        value={workflow && <Text fz={16} lh="32px" fw={600} component="span" display="block"><When at={workflow.nextFire} zone={workflow.timezone ?? null} /></Text>}
        hint={workflow?.nextFire && <When at={workflow.nextFire} as="relative" />}
      />
      <Stat
        label={t("column.last")}
        value={workflow && <LastRunCell workflow={workflow} />}
        hint={workflow?.lastRun && <When at={workflow.lastRun.fireTime} zone={workflow.timezone ?? null} />}
      />
    </SimpleGrid>
  );
}

/** The graph, in the colours of the newest run. */
function Picture({ workflow }: { workflow: WorkflowOut }) {
  const { t } = useTranslation("workflows");
  const navigate = useNavigate();
  const last = workflow.lastRun?.id;
  const run = useQuery({
    queryKey: ["workflows", workflow.name, "runs", last],
    queryFn: ({ signal }) => getRun(workflow.id, last ?? "", { signal }),
    enabled: last !== undefined,
  });
  const nodes = useMemo(() => {
    const states = new Map((run.data?.nodes ?? []).map((node) => [node.name, node]));
    return workflow.nodes.map((node) => {
      const now = states.get(node.name);
      return { name: node.name, job: node.job, after: node.after, triggerRule: node.triggerRule, map: node.map, workflow: node.workflow, sensor: node.sensor, ...(now && { state: now.state, durationMs: now.durationMs, map: now.map, sensor: now.sensor, chosen: now.chosen }) };
    });
  }, [workflow.nodes, run.data]);
  const choose = (node: string): void =>
    void navigate({ to: "/workflows/$workflow/runs/$run", params: { workflow: workflow.name, run: last ?? "" }, search: { node } });
  return (
    <Panel
      title={t("graph.title")}
      aside={
        <Text size="sm" c="dimmed">
          {last === undefined ? t("nodeCount", { count: workflow.nodes.length }) : t("graph.ofLast")}
        </Text>
      }
    >
      <Stack gap={0}>
        <WorkflowGraph nodes={nodes} label={t("graph.label", { name: workflow.name })} {...(last !== undefined && { onChoose: choose })} />
      </Stack>
    </Panel>
  );
}
