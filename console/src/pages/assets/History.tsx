import { Code, Group, Stack, Title } from "@mantine/core";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { type AssetUpdateOut, getAsset } from "@/api";
import { type Column, DataTable, EmptyState, When } from "@/parts";
import { InstanceLink, Updater } from "./parts";

/** The instances that a cell links to; a page of a job lists the others. */
const MOST_STARTED = 3;

/** The updates of an asset, newest first. */
export function History({ name }: { name: string }) {
  const { t } = useTranslation("assets");
  const columns = useColumns();
  return (
    <Stack gap="sm">
      <Title order={2}>{t("history.title")}</Title>
      <DataTable<AssetUpdateOut>
        label={t("history.title")}
        queryKey={["assets", name, "history"]}
        fetchPage={async (cursor, signal) => {
          const shown = await getAsset(name, { limit: 100, ...(cursor && { cursor }) }, { signal });
          return { items: shown.history, nextCursor: shown.nextCursor };
        }}
        columns={columns}
        idOf={(update) => update.id}
        rowHeight={60}
        empty={
          <EmptyState icon="assets" title={t("history.empty")}>
            {t("history.explain")}
          </EmptyState>
        }
      />
    </Stack>
  );
}

function useColumns(): Column<AssetUpdateOut>[] {
  const { t } = useTranslation("assets");
  return useMemo(
    () => [
      { id: "at", header: t("column.at"), width: "176px", cell: (update) => <When at={update.at} as="both" /> },
      {
        id: "by",
        header: t("column.by"),
        width: "minmax(160px, 1fr)",
        cell: (update) => (
          <Updater job={update.job} instanceId={update.instanceId} actor={update.actor} isWorkflow={update.runId !== null && update.node === null} />
        ),
      },
      { id: "started", header: t("column.started"), width: "minmax(140px, 1fr)", cell: (update) => <Started ids={update.started} /> },
      { id: "metadata", header: t("column.metadata"), width: "minmax(180px, 1.5fr)", cell: (update) => <Metadata value={update.metadata} /> },
      { id: "interval", header: t("column.interval"), width: "176px", cell: (update) => <Interval update={update} /> },
    ],
    [t],
  );
}

function Started({ ids }: { ids: readonly string[] }) {
  const { t } = useTranslation("assets");
  if (ids.length === 0) return <span aria-hidden>–</span>;
  return (
    <Group gap="xs">
      {ids.slice(0, MOST_STARTED).map((id) => (
        <InstanceLink key={id} id={id} />
      ))}
      {ids.length > MOST_STARTED && t("more", { count: ids.length - MOST_STARTED })}
    </Group>
  );
}

function Metadata({ value }: { value: unknown }) {
  if (value === null || value === undefined) return <span aria-hidden>–</span>;
  const text = JSON.stringify(value);
  return (
    <Code title={text} style={{ display: "block", overflow: "hidden", textOverflow: "ellipsis", whiteSpace: "nowrap" }}>
      {text}
    </Code>
  );
}

function Interval({ update }: { update: AssetUpdateOut }) {
  if (update.intervalStart === null) return <span aria-hidden>–</span>;
  return (
    <>
      <When at={update.intervalStart} />
      <br />
      <When at={update.intervalEnd} />
    </>
  );
}
