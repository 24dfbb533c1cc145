import { SegmentedControl } from "@mantine/core";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { type DeliveryOut, getDeliveries } from "@/api";
import { useMay } from "@/live";
import { type Column, DataTable, EmptyState, RowMenu, When } from "@/parts";
import { RedeliverDialog } from "./RedeliverDialog";
import { Section } from "./Section";

const STATUSES = ["ALL", "PENDING", "DELIVERED", "FAILED"] as const;
type Shown = (typeof STATUSES)[number];

/** The delivery log, newest first. */
export function Deliveries() {
  const { t } = useTranslation("alerts");
  const [status, choose] = useState<Shown>("ALL");
  const [repeated, repeat] = useState<DeliveryOut | null>(null);
  const columns = useColumns(repeat);
  return (
    <Section
      title={t("deliveries.title")}
      aside={
        <SegmentedControl
          aria-label={t("deliveries.filter")}
          size="xs"
          data={STATUSES.map((value) => ({ value, label: t(`deliveries.status.${value}`) }))}
          value={status}
          onChange={(value) => choose(value as Shown)}
        />
      }
    >
      <DataTable<DeliveryOut>
        label={t("deliveries.title")}
        queryKey={["alerts", "live", "deliveries", status]}
        fetchPage={(cursor, signal) => getDeliveries({ limit: 100, ...(status !== "ALL" && { status }), ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(delivery) => delivery.id}
        empty={
          <EmptyState icon="deadLetters" title={t("deliveries.none")}>
            {t("deliveries.explain")}
          </EmptyState>
        }
      />
      <RedeliverDialog delivery={repeated} onClose={() => repeat(null)} />
    </Section>
  );
}

function useColumns(repeat: (delivery: DeliveryOut) => void): Column<DeliveryOut>[] {
  const { t } = useTranslation("alerts");
  const may = useMay();
  return useMemo(
    () => [
      { id: "created", isWideOnly: true, header: t("deliveries.created"), width: "176px", cell: (delivery) => <When at={delivery.createdAt} /> },
      { id: "kind", isWideOnly: true, header: t("deliveries.kind"), width: "92px", cell: (delivery) => t(`deliveries.is.${delivery.kind}`) },
      { id: "rule", isWideOnly: true, header: t("rule"), width: "minmax(90px, 1fr)", cell: (delivery) => delivery.rule ?? "–" },
      { id: "channel", header: t("deliveries.channel"), width: "minmax(90px, 1fr)", cell: (delivery) => delivery.channel },
      { id: "alerts", isWideOnly: true, header: t("deliveries.alerts"), width: "72px", isNumeric: true, cell: (delivery) => String(delivery.alerts) },
      { id: "status", header: t("deliveries.result"), width: "100px", cell: (delivery) => t(`deliveries.status.${delivery.status}`) },
      { id: "attempt", isWideOnly: true, header: t("deliveries.attempt"), width: "92px", isNumeric: true, cell: (delivery) => String(delivery.attempt) },
      { id: "error", header: t("deliveries.answer"), width: "minmax(104px, 2fr)", cell: answerOf },
      { id: "next", isWideOnly: true, header: t("deliveries.next"), width: "108px", cell: (delivery) => <When at={delivery.nextTryAt} as="relative" /> },
      ...(may("holds")
        ? [
            {
              id: "acts",
              header: "",
              width: "56px",
              cell: (delivery: DeliveryOut) => (
                <RowMenu
                  label={t("deliveries.menu", { id: delivery.id })}
                  acts={[
                    {
                      icon: "replay",
                      label: t("redeliver.act"),
                      needs: "holds",
                      why: delivery.status === "PENDING" ? t("redeliver.pending") : null,
                      onClick: () => repeat(delivery),
                    },
                  ]}
                />
              ),
            },
          ]
        : []),
    ],
    [t, may, repeat],
  );
}

/** The answer of the channel: its HTTP status, and the error. */
function answerOf({ httpStatus, error }: DeliveryOut): string {
  return [httpStatus === null ? "" : String(httpStatus), error ?? ""].filter(Boolean).join(" · ");
}
