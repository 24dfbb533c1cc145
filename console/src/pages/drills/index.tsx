import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { type DrillOut, getDrills, type GetDrillsParams } from "@/api";
import { type Column, DataTable, EmptyState, FilterBar, Page, RowLink, useFilters, When } from "@/parts";
import { useSeconds } from "./useSeconds";
import { Verdict } from "./Verdict";

const KINDS = ["node", "primary", "standby", "zone"] as const;

/** The reports of drills that operators have filed, the newest filed first. */
export default function DrillsPage() {
  const { t } = useTranslation(["drills", "common"]);
  const [filters] = useFilters(["kind"]);
  const kind = KINDS.find((name) => name === filters.kind);
  const columns = useColumns();
  const asked: GetDrillsParams = { limit: 100, ...(kind && { kind }) };
  return (
    <Page title={t("common:page.drills")} lead={t("lead")}>
      <FilterBar fields={[{ kind: "choice", name: "kind", label: t("filter.kind"), options: KINDS.map((value) => ({ value, label: t(`kind.${value}`) })) }]} />
      <DataTable<DrillOut>
        label={t("reports")}
        queryKey={["drills", "list", kind ?? ""]}
        fetchPage={(cursor, signal) => getDrills({ ...asked, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(row) => row.id}
        empty={
          <EmptyState icon="check" title={t("empty.title")} command="horai drill node && horai drill file drills/*.json">
            {t("empty.explain")}
          </EmptyState>
        }
      />
    </Page>
  );
}

function useColumns(): Column<DrillOut>[] {
  const { t } = useTranslation("drills");
  const seconds = useSeconds();
  return useMemo(
    () => [
      { id: "kind", header: t("column.kind"), width: "minmax(96px, 1fr)", cell: (row) => <RowLink href={`/drills/${row.id}`}>{t(`kind.${row.kind}`)}</RowLink> },
      { id: "failed", header: t("column.failed"), width: "188px", cell: (row) => <When at={row.failedAt} /> },
      { id: "cluster", isWideOnly: true, header: t("column.cluster"), width: "minmax(176px, 1fr)", cell: (row) => row.cluster ?? t("own") },
      { id: "rto", header: t("column.rto"), width: "152px", isNumeric: true, cell: (row) => seconds(row.rtoSeconds) },
      { id: "rpo", header: t("column.rpo"), width: "152px", isNumeric: true, cell: (row) => seconds(row.rpoSeconds) },
      { id: "kept", header: t("column.promises"), width: "112px", cell: (row) => <Verdict isKept={row.kept} /> },
      { id: "filed", isWideOnly: true, header: t("column.filed"), width: "188px", cell: (row) => <When at={row.filedAt} /> },
    ],
    [t, seconds],
  );
}
