import { Badge, Group, Text } from "@mantine/core";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { getReconcilers, type ReconcilerOut } from "@/api";
import { type Column, DataTable, EmptyState, Go, GoButton, Icon, Page, RowMenu, ScheduleCell, Status, When } from "@/parts";
import { actsOf } from "./acts";
import { type Asked, Dialogs } from "./dialogs";
import { Drift } from "./Drift";
import { sourceLine } from "./source";

const TRY = `horai reconcilers create articles --job publish --every 5m --database-url-env BUSINESS_DB_URL \\
  --query 'select key, execute_time from article where key > $1 order by key limit $2'`;

export default function ReconcilersPage() {
  const { t } = useTranslation(["reconcilers", "common", "schedules"]);
  const [asked, ask] = useState<Asked | null>(null);
  const columns = useColumns(ask);
  const create = (
    <GoButton to="/reconcilers/new" leftSection={<Icon name="plus" size={16} />}>
      {t("act.new")}
    </GoButton>
  );
  return (
    <Page title={t("common:page.reconcilers")} lead={t("lead")} actions={create}>
      <DataTable
        label={t("common:page.reconcilers")}
        queryKey={["reconcilers", "list"]}
        fetchPage={(cursor, signal) => getReconcilers({ limit: 100, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(reconciler) => reconciler.id}
        hrefOf={(reconciler) => `/reconcilers/${encodeURIComponent(reconciler.name)}`}
        rowHeight={56}
        empty={
          <EmptyState icon="reconcilers" title={t("empty.title")} command={TRY} action={create}>
            {t("empty.explain")}
          </EmptyState>
        }
      />
      <Dialogs asked={asked} onClose={() => ask(null)} />
    </Page>
  );
}

function useColumns(ask: (asked: Asked) => void): Column<ReconcilerOut>[] {
  const { t } = useTranslation(["reconcilers", "schedules"]);
  return useMemo(
    () => [
      {
        id: "name",
        header: t("column.name"),
        width: "minmax(144px, 1fr)",
        cell: (reconciler) => (
          <>
            <Go to="/reconcilers/$reconciler" params={{ reconciler: reconciler.name }} size="sm" fw={600}>
              {reconciler.name}
            </Go>
            <Text size="xs" c="dimmed" truncate>
              {t("watches", { job: reconciler.job })}
            </Text>
          </>
        ),
      },
      { id: "last", header: t("column.last"), width: "minmax(200px, 1.6fr)", cell: (reconciler) => <LastReport reconciler={reconciler} /> },
      {
        id: "source",
        header: t("column.source"),
        width: "minmax(160px, 1.3fr)",
        cell: (reconciler) => (
          <Group gap="xs" wrap="nowrap">
            <Badge variant="default" size="sm" radius="sm" flex="none">
              {String(reconciler.source["type"])}
            </Badge>
            <Text size="sm" c="dimmed" truncate title={sourceLine(reconciler)}>
              {sourceLine(reconciler)}
            </Text>
          </Group>
        ),
      },
      { id: "schedule", header: t("column.schedule"), width: "minmax(136px, 1fr)", cell: (reconciler) => <ScheduleCell of={reconciler} /> },
      { id: "next", header: t("column.next"), width: "160px", cell: (reconciler) => <When at={reconciler.nextFire} as="both" precision="minute" zone={reconciler.timezone} /> },
      { id: "status", header: t("column.status"), width: "100px", cell: (reconciler) => <Status status={reconciler.status} /> },
      {
        id: "acts",
        header: "",
        width: "56px",
        cell: (reconciler) => <RowMenu label={t("act.menu", { name: reconciler.name })} acts={actsOf(reconciler, t, ask)} />,
      },
    ],
    [t, ask],
  );
}

function LastReport({ reconciler }: { reconciler: ReconcilerOut }) {
  const { t } = useTranslation("reconcilers");
  const report = reconciler.lastReport;
  if (!report) {
    return (
      <Text size="sm" c="dimmed">
        {t("neverRun")}
      </Text>
    );
  }
  return (
    <>
      <Drift report={report} />
      <Text size="xs" c="dimmed" truncate>
        {t("found", { count: report.found })} · <When at={report.startedAt} as="relative" />
      </Text>
    </>
  );
}
