import { Group, Text, Title } from "@mantine/core";
import type { TFunction } from "i18next";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { type GetRunsState, getRunCount, getRuns, type RunOut, type RunsIn, type WorkflowOut } from "@/api";
import { Act, type Column, DataTable, Duration, EmptyState, FilterInput, Go, GoButton, useFilters, When } from "@/parts";
import { Chosen } from "@/parts/Chosen";
import { useColumnChoice } from "@/parts/columnChoice";
import { ListTools } from "@/parts/ListTools";
import { TimeRange } from "@/parts/TimeRange";
import { type ManyRuns, ManyRunsDialog, type RunVerb } from "./ManyRuns";
import { RunChip } from "./RunChip";

const NONE: ReadonlySet<string> = new Set();
const VERBS = ["rerun", "cancel"] as const;
/** The most runs that one request names. */
const MOST_NAMED = 500;
const STATES = ["RUNNING", "BLOCKED", "SUCCESS", "CANCELLED"] as const satisfies readonly NonNullable<GetRunsState>[];

/** What stands in the address. `at` is where the list begins: it hides nothing of what matches. */
const NAMES = ["state", "from", "to", "order", "at"] as const;

/** The runs of a workflow by fire time, the newest first. */
export function Runs({ workflow }: { workflow: WorkflowOut }) {
  const { t } = useTranslation(["workflows", "common"]);
  const [filters, change] = useFilters(NAMES);
  const { from, to, at } = filters;
  const state = STATES.find((each) => each === filters.state) ?? null;
  const isUp = filters.order === "oldest";
  const narrowed = { ...(state && { state }), ...(from && { from }), ...(to && { to }) };
  const wanted = { ...narrowed, ...(isUp && { order: "oldest" as const }), ...(at && { at }) };
  const [chosen, choose] = useState(NONE);
  const [many, setMany] = useState<ManyRuns | null>(null);
  const close = (): void => {
    setMany(null);
    choose(NONE);
  };
  const isFiltered = Object.keys(narrowed).length > 0 || at !== undefined;
  const columns = useColumnChoice("runs", useColumns(workflow));
  return (
    <>
      <Group justify="space-between" align="flex-end">
        <Title order={2}>{t("runs.title")}</Title>
        <Group gap="sm" align="flex-end" role="search">
          {VERBS.map((verb) => (
            <Act key={verb} variant="default" why={whyNotAll(verb, narrowed, t)} onClick={() => setMany({ verb, only: narrowed as RunsIn })}>
              {t(`${verb}Many.all`)}
            </Act>
          ))}
          <FilterInput
            field={{ kind: "choice", name: "state", label: t("runs.state"), options: STATES.map((value) => ({ value, label: t(`common:state.${value}`) })) }}
            value={state ?? ""}
            onChange={(value) => change({ state: value })}
          />
          <TimeRange label={t("runs.fireTime")} from={from} to={to} onChange={change} />
        </Group>
      </Group>
      <Group justify="space-between">
        <Compare workflow={workflow.name} chosen={chosen} />
        <ListTools list="runs" columns={columns} start={{ at, onChange: (start) => change({ at: start }) }} />
      </Group>
      <DataTable
        label={t("runs.title")}
        queryKey={["workflows", workflow.name, "runs", "list", wanted]}
        fetchPage={(cursor, signal) => getRuns(workflow.id, { limit: 100, ...wanted, ...(cursor && { cursor }) }, { signal })}
        columns={columns.shown}
        total={{ key: ["runs", workflow.id, narrowed], count: (signal) => getRunCount(workflow.id, narrowed, { signal }) }}
        isPart={at !== undefined}
        order={{ column: "fire", isUp, onChange: (up) => change({ order: up ? "oldest" : undefined }) }}
        idOf={(run) => run.id}
        selection={{ chosen, onChange: choose }}
        hrefOf={(run) => `/workflows/${encodeURIComponent(workflow.name)}/runs/${run.id}`}
        empty={
          <EmptyState icon="workflows" title={t(isFiltered ? "runs.noneOf" : "runs.none")} command={`horai workflows trigger ${workflow.name}`}>
            {t("runs.explain")}
          </EmptyState>
        }
      />
      <Chosen count={chosen.size} onClear={() => choose(NONE)}>
        {VERBS.map((verb) => (
          <Act key={verb} size="xs" variant="default" onClick={() => setMany({ verb, only: { ids: [...chosen].slice(0, MOST_NAMED) } })}>
            {t(`${verb}Many.chosen`)}
          </Act>
        ))}
      </Chosen>
      {many && <ManyRunsDialog {...many} workflow={workflow} onClose={close} />}
    </>
  );
}

/** Leads to the comparison of two selected runs, the one that was selected first at the left: ids do not follow time. */
function Compare({ workflow, chosen }: { workflow: string; chosen: ReadonlySet<string> }) {
  const { t } = useTranslation("workflows");
  const [left, right] = [...chosen];
  if (chosen.size !== 2) {
    return (
      <Text size="sm" c="dimmed">
        {t("compare.choose")}
      </Text>
    );
  }
  return (
    <GoButton size="compact-sm" variant="default" to="/workflows/$workflow/compare" params={{ workflow }} search={{ left, right } as never}>
      {t("compare.chosen")}
    </GoButton>
  );
}

/** Everything at once is refused, and so is a state in which the verb changes nothing. */
function whyNotAll(verb: RunVerb, narrowed: { state?: GetRunsState; from?: string; to?: string }, t: TFunction<["workflows", "common"]>): string | null {
  if (Object.keys(narrowed).length === 0) return t(`${verb}Many.noFilter`);
  const open: readonly (GetRunsState | undefined)[] = verb === "cancel" ? [undefined, "RUNNING", "BLOCKED"] : [undefined, "BLOCKED"];
  return open.includes(narrowed.state) ? null : t(`${verb}Many.nothing`);
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
      { id: "finished", header: t("runs.finished"), width: "200px", sortBy: (run) => run.finishedAt ?? null, cell: (run) => <When at={run.finishedAt} zone={workflow.timezone ?? null} /> },
      { id: "duration", header: t("runs.duration"), width: "120px", isNumeric: true, sortBy: (run) => run.durationMs ?? null, cell: (run) => <Duration ms={run.durationMs} /> },
      { id: "reruns", header: t("runs.reruns"), width: "104px", isNumeric: true, sortBy: (run) => run.generation, cell: (run) => run.generation || "–" },
    ],
    [t, workflow],
  );
}
