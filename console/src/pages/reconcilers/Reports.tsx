import { Drawer, Group, Title, UnstyledButton } from "@mantine/core";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { getReports, type ReconcilerOut, type ReportOut } from "@/api";
import { between, type Column, DataTable, Download, Duration, EmptyState, When } from "@/parts";
import { Drift } from "./Drift";
import { Report } from "./Report";

const IN_FILES = ["id", "startedAt", "finishedAt", "found", "missing", "created", "surplus", "leftAlone", "faulty", "error", "instanceId"] as const;

/** What the comparisons came to, newest first. */
export function Reports({ reconciler }: { reconciler: ReconcilerOut }) {
  const { t } = useTranslation("reconcilers");
  const [shown, show] = useState<ReportOut | null>(null);
  const columns = useColumns(reconciler.timezone, show);
  return (
    <>
      <Group justify="space-between" align="flex-end">
        <Title order={2}>{t("reports.title")}</Title>
        <Download<ReportOut>
          name={`${reconciler.name}-reports`}
          columns={IN_FILES}
          fetchPage={(cursor) => getReports(reconciler.id, { limit: 500, ...(cursor && { cursor }) })}
        />
      </Group>
      <DataTable
        label={t("reports.title")}
        queryKey={["reconcilers", reconciler.name, "reports"]}
        fetchPage={(cursor, signal) => getReports(reconciler.id, { limit: 100, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(report) => report.id}
        empty={
          <EmptyState icon="reconcilers" title={t("reports.none")} command={`horai reconcilers run ${reconciler.name}`}>
            {t("reports.explain")}
          </EmptyState>
        }
      />
      <Drawer opened={shown !== null} onClose={() => show(null)} position="right" size="lg" title={shown && t("reports.one", { id: shown.id })}>
        {shown && <Report report={shown} zone={reconciler.timezone} />}
      </Drawer>
    </>
  );
}

function useColumns(zone: string | null, show: (report: ReportOut) => void): Column<ReportOut>[] {
  const { t } = useTranslation("reconcilers");
  return useMemo(() => {
    const count = (id: "found" | "missing" | "created" | "surplus" | "leftAlone" | "faulty"): Column<ReportOut> => ({
      id,
      header: t(`count.${id}`),
      width: "84px",
      isNumeric: true,
      cell: (report) => report[id] ?? "–",
    });
    return [
      {
        id: "started",
        header: t("reports.started"),
        width: "176px",
        cell: (report) => (
          <UnstyledButton fz="sm" fw={600} c="var(--mantine-color-anchor)" onClick={() => show(report)}>
            <When at={report.startedAt} zone={zone} />
          </UnstyledButton>
        ),
      },
      { id: "finding", header: t("reports.finding"), width: "minmax(170px, 1fr)", cell: (report) => <Drift report={report} /> },
      count("found"),
      count("missing"),
      count("created"),
      count("surplus"),
      count("leftAlone"),
      count("faulty"),
      { id: "took", header: t("reports.took"), width: "88px", isNumeric: true, cell: (report) => <Duration ms={between(report.startedAt, report.finishedAt)} /> },
    ];
  }, [t, zone, show]);
}
