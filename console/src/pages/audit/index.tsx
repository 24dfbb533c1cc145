import { Alert, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { type AuditOut, type ChainOut, getAudit, verifyAudit } from "@/api";
import { Act, type Column, CopyAs, DataTable, EmptyState, ErrorView, FilterBar, type FilterField, Icon, Page, useFilters, When } from "@/parts";
import { changesOf } from "./changes";

const FILTERS = ["actor", "verb", "object"] as const;

export default function AuditPage() {
  const { t } = useTranslation(["audit", "common"]);
  const [filters] = useFilters(FILTERS);
  const columns = useColumns();
  const fields: FilterField[] = FILTERS.map((name) => ({ kind: "text", name, label: t(`filter.${name}`) }));
  const verifying = useMutation({ mutationFn: () => verifyAudit() });
  return (
    <Page
      title={t("common:page.audit")}
      lead={t("lead")}
      actions={
        <>
          <CopyAs recipe={{ method: "GET", path: "/api/v1/audit/verify", cli: "horai audit verify" }} of={t("verify.act")} />
          <Act needs="keys" variant="default" loading={verifying.isPending} leftSection={<Icon name="check" size={16} />} onClick={() => verifying.mutate()}>
            {t("verify.act")}
          </Act>
        </>
      }
    >
      <ErrorView error={verifying.error} />
      {verifying.data && <Verdict chain={verifying.data} />}
      <FilterBar fields={fields} />
      <DataTable<AuditOut>
        label={t("common:page.audit")}
        queryKey={["audit", "list", filters]}
        fetchPage={(cursor, signal) => getAudit({ ...filters, limit: 100, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(row) => row.id}
        rowHeight={56}
        empty={
          <EmptyState icon="check" title={t("empty.title")}>
            {t("empty.explain")}
          </EmptyState>
        }
      />
    </Page>
  );
}

function Verdict({ chain }: { chain: ChainOut }) {
  const { t } = useTranslation("audit");
  if (!chain.intact) {
    return <Alert color="red">{t("verify.broken", { count: chain.faults.length, seal: chain.faults[0]?.seal })}</Alert>;
  }
  const told = chain.nextSeal === null ? "verify.intact" : "verify.partly";
  return <Alert color="green">{t(told, { rows: chain.rows, seals: chain.seals })}</Alert>;
}

function useColumns(): Column<AuditOut>[] {
  const { t } = useTranslation("audit");
  return useMemo(
    () => [
      { id: "at", header: t("column.at"), width: "200px", cell: (row) => <When at={row.at} /> },
      {
        id: "actor",
        header: t("column.actor"),
        width: "minmax(120px, 1fr)",
        cell: (row) => (
          <>
            <Text size="sm" truncate>
              {row.actor.name || row.actor.id || row.actor.kind}
            </Text>
            <Text size="xs" c="dimmed" truncate>
              {[row.actor.role, row.address].filter(Boolean).join(" · ")}
            </Text>
          </>
        ),
      },
      { id: "verb", header: t("column.verb"), width: "minmax(140px, 1fr)", cell: (row) => row.verb },
      {
        id: "object",
        header: t("column.object"),
        width: "minmax(140px, 1fr)",
        cell: (row) => (
          <Text size="sm" truncate title={row.object.id}>
            {row.object.name || row.object.id}
          </Text>
        ),
      },
      {
        id: "change",
        header: t("column.change"),
        width: "minmax(220px, 2fr)",
        cell: (row) => {
          const told = changesOf(row, t("none"));
          return (
            <Text size="xs" lineClamp={2} title={told}>
              {told}
            </Text>
          );
        },
      },
    ],
    [t],
  );
}
