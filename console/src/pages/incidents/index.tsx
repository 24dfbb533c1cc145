import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { getIncidents, type IncidentOut } from "@/api";
import { Act, type Column, DataTable, EmptyState, Icon, Page, RowMenu, When } from "@/parts";
import { Incident } from "./Incident";
import { IncidentForm } from "./IncidentForm";

/** Incidents of the cluster, newest first. */
export default function IncidentsPage() {
  const { t } = useTranslation(["incidents", "common"]);
  const [isOpening, open] = useState(false);
  const [shown, show] = useState<string | null>(null);
  const columns = useColumns(show);
  return (
    <Page
      title={t("common:page.incidents")}
      lead={t("lead")}
      actions={
        <Act needs="platform" onClick={() => open(true)} leftSection={<Icon name="plus" size={16} />}>
          {t("open.act")}
        </Act>
      }
    >
      <DataTable<IncidentOut>
        label={t("common:page.incidents")}
        queryKey={["incidents", "list"]}
        fetchPage={(cursor, signal) => getIncidents({ limit: 100, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(row) => row.id}
        empty={
          <EmptyState icon="warning" title={t("empty.title")} command={'horai incidents open "Payment provider is down"'}>
            {t("empty.explain")}
          </EmptyState>
        }
      />
      <IncidentForm opened={isOpening} onClose={() => open(false)} />
      <Incident id={shown} onClose={() => show(null)} />
    </Page>
  );
}

function useColumns(show: (id: string) => void): Column<IncidentOut>[] {
  const { t } = useTranslation("incidents");
  return useMemo(
    () => [
      { id: "severity", header: t("column.severity"), width: "96px", cell: (row) => row.severity },
      { id: "title", header: t("column.title"), width: "minmax(220px, 2fr)", cell: (row) => row.title },
      { id: "cause", header: t("column.cause"), width: "190px", cell: (row) => row.cause },
      { id: "opened", header: t("column.opened"), width: "190px", cell: (row) => <When at={row.openedAt} /> },
      { id: "closed", header: t("column.closed"), width: "190px", cell: (row) => (row.closedAt === null ? t("isOpen") : <When at={row.closedAt} />) },
      {
        id: "acts",
        header: "",
        width: "56px",
        cell: (row) => (
          <RowMenu label={t("menu", { title: row.title })} acts={[{ icon: "info", label: t("timeline.act"), needs: "platform", onClick: () => show(row.id) }]} />
        ),
      },
    ],
    [t, show],
  );
}
