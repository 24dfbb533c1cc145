import { Alert, Button, Group, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { type AuditOut, type ChainOut, getAudit, getExportAuditUrl, verifyAudit } from "@/api";
import { Act, type Column, CopyAs, DataTable, EmptyState, ErrorView, FilterBar, type FilterField, Icon, Page, useFilters, When } from "@/parts";
import { TimeRange } from "@/parts/TimeRange";
import { changesOf } from "./changes";

const WORDS = ["actor", "verb", "object"] as const;
const FILTERS = [...WORDS, "from", "to"] as const;

export default function AuditPage() {
  const { t } = useTranslation(["audit", "common"]);
  const [filters, change] = useFilters(FILTERS);
  const columns = useColumns();
  const fields: FilterField[] = WORDS.map((name) => ({ kind: "text", name, label: t(`filter.${name}`) }));
  const verifying = useMutation({ mutationFn: () => verifyAudit() });
  return (
    <Page
      title={t("common:page.audit")}
      lead={t("lead")}
      actions={
        <>
          {/* The browser writes the stream to the file: the log may be larger than a page can hold. */}
          <Button component="a" href={getExportAuditUrl(filters)} download="audit.jsonl" variant="default" leftSection={<Icon name="download" size={16} />}>
            {t("common:download.open")}
          </Button>
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
      <Group>
        <TimeRange label={t("column.at")} from={filters.from} to={filters.to} onChange={change} />
      </Group>
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
