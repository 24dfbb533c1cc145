import { Group, Title } from "@mantine/core";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { type GetRunsState, getRuns, type RunOut, type WorkflowOut } from "@/api";
import { type Column, DataTable, Duration, EmptyState, FilterBar, Go, useFilters, When } from "@/parts";
import { RunChip } from "./RunChip";

const STATES = ["RUNNING", "BLOCKED", "SUCCESS", "CANCELLED"] as const satisfies readonly NonNullable<GetRunsState>[];

/** The runs of a workflow, newest fire time first. */
export function Runs({ workflow }: { workflow: WorkflowOut }) {
  const { t } = useTranslation(["workflows", "common"]);
  const [filters] = useFilters(["state"]);
  const state = STATES.find((each) => each === filters.state) ?? null;
  const columns = useColumns(workflow);
  return (
    <>
      <Group justify="space-between" align="flex-end">
        <Title order={2}>{t("runs.title")}</Title>
        <FilterBar
          fields={[{ kind: "choice", name: "state", label: t("runs.state"), options: STATES.map((value) => ({ value, label: t(`common:state.${value}`) })) }]}
        />
      </Group>
      <DataTable
        label={t("runs.title")}
        queryKey={["workflows", workflow.name, "runs", "list", state]}
        fetchPage={(cursor, signal) => getRuns(workflow.id, { limit: 100, ...(cursor && { cursor }), ...(state && { state }) }, { signal })}
        columns={columns}
        idOf={(run) => run.id}
        hrefOf={(run) => `/workflows/${encodeURIComponent(workflow.name)}/runs/${run.id}`}
        empty={
          <EmptyState icon="workflows" title={t(state ? "runs.noneOf" : "runs.none")} command={`horai workflows trigger ${workflow.name}`}>
            {t("runs.explain")}
          </EmptyState>
        }
      />
    </>
  );
}

function useColumns(workflow: WorkflowOut): Column<RunOut>[] {
  const { t } = useTranslation("workflows");
  return useMemo(
    () => [
      {
        id: "run",
        header: t("runs.run"),
        width: "minmax(96px, 1fr)",
        cell: (run) => (
          <Go to="/workflows/$workflow/runs/$run" params={{ workflow: workflow.name, run: run.id }} size="sm" fw={600} className="numbers">
            {run.id}
          </Go>
        ),
      },
      { id: "state", header: t("runs.state"), width: "160px", cell: (run) => <RunChip state={run.state} /> },
      { id: "fire", header: t("runs.fireTime"), width: "200px", cell: (run) => <When at={run.fireTime} zone={workflow.timezone ?? null} /> },
      { id: "finished", header: t("runs.finished"), width: "200px", cell: (run) => <When at={run.finishedAt} zone={workflow.timezone ?? null} /> },
      { id: "duration", header: t("runs.duration"), width: "120px", isNumeric: true, cell: (run) => <Duration ms={run.durationMs} /> },
      { id: "reruns", header: t("runs.reruns"), width: "104px", isNumeric: true, cell: (run) => run.generation || "–" },
    ],
    [t, workflow],
  );
}
