import { SegmentedControl, Text } from "@mantine/core";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { type AlertOut, getAlerts } from "@/api";
import { useMay } from "@/live";
import { type Column, DataTable, EmptyState, Icon, RowMenu, When } from "@/parts";
import { Section } from "./Section";
import { SilenceForm, type SilencedFields } from "./SilenceForm";

const STATUSES = ["FIRING", "ALL"] as const;

/** The alerts that fire, newest first; also those that are resolved. */
export function Firing() {
  const { t } = useTranslation("alerts");
  const [status, choose] = useState<(typeof STATUSES)[number]>("FIRING");
  const [silenced, silence] = useState<SilencedFields | null>(null);
  const columns = useColumns(silence);
  return (
    <Section
      title={t("firing.title")}
      aside={
        <SegmentedControl
          aria-label={t("firing.filter")}
          size="xs"
          data={STATUSES.map((value) => ({ value, label: t(`firing.only.${value}`) }))}
          value={status}
          onChange={(value) => choose(value as (typeof STATUSES)[number])}
        />
      }
    >
      <DataTable<AlertOut>
        label={t("firing.title")}
        queryKey={["alerts", "live", "firing", status]}
        fetchPage={(cursor, signal) => getAlerts({ status, limit: 100, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(alert) => alert.id}
        empty={
          <EmptyState icon="check" title={t(`firing.none.${status}`)}>
            {t("firing.explain")}
          </EmptyState>
        }
      />
      <SilenceForm opened={silenced !== null} of={silenced ?? {}} onClose={() => silence(null)} />
    </Section>
  );
}

function useColumns(silence: (fields: SilencedFields) => void): Column<AlertOut>[] {
  const { t } = useTranslation("alerts");
  const may = useMay();
  return useMemo(
    () => [
      { id: "status", header: t("firing.status"), width: "120px", cell: (alert) => <AlertStatus alert={alert} /> },
      { id: "rule", header: t("rule"), width: "minmax(120px, 1fr)", cell: (alert) => alert.rule },
      { id: "kind", header: t("condition"), width: "minmax(180px, 1.5fr)", cell: (alert) => t(`kind.${alert.kind}`) },
      { id: "object", header: t("firing.object"), width: "minmax(140px, 1fr)", cell: (alert) => objectOf(alert) },
      { id: "since", header: t("firing.since"), width: "140px", cell: (alert) => <When at={alert.since} as="relative" /> },
      { id: "told", header: t("firing.told"), width: "150px", cell: (alert) => <Told alert={alert} /> },
      ...(may("holds")
        ? [
            {
              id: "acts",
              header: "",
              width: "56px",
              cell: (alert: AlertOut) => (
                <RowMenu
                  label={t("menu", { name: `${alert.rule} ${alert.object}` })}
                  acts={[{ icon: "pause", label: t("silence.act"), needs: "holds", onClick: () => silence({ rule: alert.rule, job: alert.job ?? "" }) }]}
                />
              ),
            },
          ]
        : []),
    ],
    [t, may, silence],
  );
}

/** The name of the job if the alert has one; ids are for programs. */
function objectOf(alert: AlertOut): string {
  return alert.job === null || alert.job === alert.object ? alert.object : `${alert.job} (${alert.object})`;
}

function AlertStatus({ alert }: { alert: AlertOut }) {
  const { t } = useTranslation("alerts");
  return (
    <Text span size="sm" fw={600} style={{ display: "inline-flex", gap: 6, alignItems: "center" }}>
      <Icon name={alert.status === "FIRING" ? "warning" : "check"} size={14} />
      {t(`firing.is.${alert.status}`)}
    </Text>
  );
}

function Told({ alert }: { alert: AlertOut }) {
  const { t } = useTranslation("alerts");
  if (alert.notifiedAt !== null) return <When at={alert.notifiedAt} as="relative" />;
  return t(alert.silencedBy === null ? "firing.waits" : "firing.silenced");
}
