import { SegmentedControl, Text } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { type AlertOut, getAlerts } from "@/api";
import { useMay } from "@/live";
import { Act, type Column, DataTable, EmptyState, Icon, RowMenu, When } from "@/parts";
import { AcknowledgeDialog } from "./AcknowledgeDialog";
import { Section } from "./Section";
import { SilenceForm, type SilencedFields } from "./SilenceForm";

const STATUSES = ["FIRING", "ALL"] as const;

/** The alerts that fire, newest first; also those that are resolved. */
export function Firing() {
  const { t } = useTranslation("alerts");
  const [status, choose] = useState<(typeof STATUSES)[number]>("FIRING");
  const [silenced, silence] = useState<SilencedFields | null>(null);
  const [acknowledged, acknowledge] = useState<AlertOut | null>(null);
  const isPhone = useMediaQuery("(max-width: 48em)", false);
  const columns = useColumns(isPhone, silence, acknowledge);
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
        rowHeight={isPhone ? 64 : 44}
        idOf={(alert) => alert.id}
        empty={
          <EmptyState icon="check" title={t(`firing.none.${status}`)}>
            {t("firing.explain")}
          </EmptyState>
        }
      />
      <AcknowledgeDialog alert={acknowledged} onClose={() => acknowledge(null)} />
      <SilenceForm opened={silenced !== null} of={silenced ?? {}} onClose={() => silence(null)} />
    </Section>
  );
}

function useColumns(
  isPhone: boolean,
  silence: (fields: SilencedFields) => void,
  acknowledge: (alert: AlertOut) => void,
): Column<AlertOut>[] {
  const { t } = useTranslation("alerts");
  const may = useMay();
  return useMemo(
    () => [
      { id: "status", isWideOnly: true, header: t("firing.status"), width: "104px", cell: (alert) => <AlertStatus alert={alert} /> },
      { id: "rule", isWideOnly: true, header: t("rule"), width: "minmax(120px, 1fr)", cell: (alert) => alert.rule },
      { id: "kind", isWideOnly: true, header: t("condition"), width: "minmax(160px, 1.5fr)", cell: (alert) => t(`kind.${alert.kind}`) },
      {
        id: "object",
        header: t("firing.object"),
        width: isPhone ? "minmax(0, 1fr)" : "minmax(140px, 1fr)",
        cell: (alert) => (isPhone ? <OnPhone alert={alert} /> : objectOf(alert)),
      },
      { id: "since", isWideOnly: true, header: t("firing.since"), width: "110px", cell: (alert) => <When at={alert.since} as="relative" /> },
      { id: "told", isWideOnly: true, header: t("firing.told"), width: "130px", cell: (alert) => <Told alert={alert} /> },
      {
        id: "acknowledged",
        header: t("acknowledge.column"),
        width: isPhone ? "148px" : "160px",
        cell: (alert) => <Acknowledged alert={alert} onAsk={acknowledge} />,
      },
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
    [t, may, isPhone, silence, acknowledge],
  );
}

/** The name of the job if the alert has one; ids are for programs. */
function objectOf(alert: AlertOut): string {
  return alert.job === null || alert.job === alert.object ? alert.object : `${alert.job} (${alert.object})`;
}

/** What a phone shows in one cell: the object, and below it the note, the condition and its rule. */
function OnPhone({ alert }: { alert: AlertOut }) {
  const { t } = useTranslation("alerts");
  return (
    <>
      <Text size="sm" fw={600} truncate>
        <Icon name={alert.status === "FIRING" ? "warning" : "check"} size={14} /> {objectOf(alert)}
      </Text>
      <Text size="xs" c="dimmed" truncate>
        {[alert.acknowledgedNote, t(`kind.${alert.kind}`), alert.rule].filter(Boolean).join(" · ")}
      </Text>
    </>
  );
}

/** When and by whom it was acknowledged; until then, a button. */
function Acknowledged({ alert, onAsk }: { alert: AlertOut; onAsk: (alert: AlertOut) => void }) {
  const { t } = useTranslation("alerts");
  if (alert.acknowledgedAt !== null) {
    const told = [alert.acknowledgedBy, alert.acknowledgedNote].filter(Boolean).join(": ");
    return (
      <Text component="div" size="sm" truncate title={told}>
        <Icon name="check" size={14} /> <When at={alert.acknowledgedAt} as="relative" />
        {told && ` · ${told}`}
      </Text>
    );
  }
  if (alert.status !== "FIRING") return null;
  return (
    <Act
      needs="holds"
      variant="default"
      size="compact-sm"
      aria-label={t("acknowledge.named", { name: `${alert.rule} ${alert.object}` })}
      onClick={() => onAsk(alert)}
    >
      {t("acknowledge.act")}
    </Act>
  );
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
