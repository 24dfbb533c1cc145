import { Text } from "@mantine/core";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { getWorkflows, type GetWorkflowsParams, type WorkflowOut } from "@/api";
import { type Column, DataTable, EmptyState, FilterBar, Go, GoButton, Icon, Page, RowMenu, ScheduleCell, Status, useFilters, When } from "@/parts";
import { type Asked, Dialogs } from "./dialogs";
import { LastRunCell } from "./LastRunCell";

const TRY = `curl -X POST ${location.origin}/api/v1/workflows -H 'Content-Type: application/json' \\
  -d '{"name": "nightly", "cron": "0 2 * * *", "nodes": [{"name": "extract"}, {"name": "report", "after": ["extract"]}]}'`;

const FILTERS = ["name", "tag", "status", "owner"] as const;

export default function WorkflowsPage() {
  const { t } = useTranslation(["workflows", "common", "schedules"]);
  const [asked, ask] = useState<Asked | null>(null);
  const columns = useColumns(ask);
  const [{ name, ...filters }] = useFilters(FILTERS);
  const wanted = { ...filters, ...(name && { nameContains: name }) } as GetWorkflowsParams;
  return (
    <Page
      title={t("common:page.workflows")}
      lead={t("lead")}
      actions={
        <GoButton to="/workflows/new" leftSection={<Icon name="plus" size={16} />}>
          {t("act.new")}
        </GoButton>
      }
    >
      <Filters />
      <DataTable
        label={t("common:page.workflows")}
        queryKey={["workflows", "list", wanted]}
        fetchPage={(cursor, signal) => getWorkflows({ limit: 100, ...wanted, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(workflow) => workflow.id}
        hrefOf={(workflow) => `/workflows/${encodeURIComponent(workflow.name)}`}
        rowHeight={56}
        empty={<Nothing isFiltered={Object.keys(wanted).length > 0} />}
      />
      <Dialogs asked={asked} onClose={() => ask(null)} />
    </Page>
  );
}

/** Name or title, tag, status and owner, in the address of the page. */
function Filters() {
  const { t } = useTranslation("jobs");
  const statuses = (["ACTIVE", "PAUSED"] as const).map((value) => ({ value, label: t(`status.${value}`) }));
  return (
    <FilterBar
      fields={[
        { name: "name", label: t("filter.name"), kind: "text", width: 240 },
        { name: "tag", label: t("filter.tag"), kind: "text", width: 160 },
        { name: "status", label: t("filter.status"), kind: "choice", options: statuses, width: 140 },
        { name: "owner", label: t("filter.owner"), kind: "text", width: 140 },
      ]}
    />
  );
}

function Nothing({ isFiltered }: { isFiltered: boolean }) {
  const { t } = useTranslation("workflows");
  return isFiltered ? (
    <EmptyState icon="filter" title={t("empty.filtered")}>
      {t("empty.filteredHint")}
    </EmptyState>
  ) : (
    <EmptyState icon="workflows" title={t("empty.title")} command={TRY} action={<GoButton to="/workflows/new">{t("act.new")}</GoButton>}>
      {t("empty.explain")}
    </EmptyState>
  );
}

function useColumns(ask: (asked: Asked) => void): Column<WorkflowOut>[] {
  const { t } = useTranslation(["workflows", "schedules"]);
  return useMemo(
    () => [
      {
        id: "name",
        header: t("column.name"),
        width: "minmax(200px, 1.4fr)",
        cell: (workflow) => (
          <>
            <Go to="/workflows/$workflow" params={{ workflow: workflow.name }} fw={600} size="sm">
              {workflow.name}
            </Go>
            <Text size="xs" c="dimmed" truncate>
              {[workflow.title, t("nodeCount", { count: workflow.nodes.length }), workflow.owner, ...workflow.tags].filter(Boolean).join(" · ")}
            </Text>
          </>
        ),
      },
      { id: "schedule", header: t("column.schedule"), width: "minmax(200px, 1.4fr)", cell: (workflow) => <ScheduleCell of={workflow} /> },
      { id: "next", header: t("column.next"), width: "160px", cell: (workflow) => <When at={workflow.nextFire} as="both" precision="minute" zone={workflow.timezone ?? null} /> },
      { id: "last", header: t("column.last"), width: "minmax(260px, 1.2fr)", cell: (workflow) => <LastRunCell workflow={workflow} /> },
      { id: "status", header: t("column.status"), width: "112px", cell: (workflow) => <Status status={workflow.status} /> },
      {
        id: "acts",
        header: "",
        width: "56px",
        cell: (workflow) => (
          <RowMenu
            label={t("act.menu", { name: workflow.name })}
            acts={[
              { icon: "play", label: t("act.trigger"), onClick: () => ask({ act: "trigger", workflow }) },
              workflow.status === "PAUSED"
                ? { icon: "right", label: t("schedules:resume.act"), onClick: () => ask({ act: "resume", workflow }) }
                : { icon: "pause", label: t("schedules:pause.act"), onClick: () => ask({ act: "pause", workflow }) },
              { icon: "trash", label: t("act.delete"), onClick: () => ask({ act: "delete", workflow }), isDangerous: true, needs: "admin" },
            ]}
          />
        ),
      },
    ],
    [t, ask],
  );
}
