import { Button, Group, Modal, Text, Title, VisuallyHidden } from "@mantine/core";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { getQueues, type QueueOut } from "@/api";
import { Act, type Column, DataTable, EmptyState, Go, Icon, Meter, Status } from "@/parts";
import { History } from "@/parts/versions/History";
import { PauseQueue } from "./PauseQueue";
import { QueueForm } from "./QueueForm";

/** Every queue, with what it allows and what is in it. */
export function Queues() {
  const { t } = useTranslation(["queues", "common", "definitions"]);
  const [edited, edit] = useState<QueueOut | "new" | null>(null);
  const [held, hold] = useState<QueueOut | null>(null);
  const [seen, see] = useState<string | null>(null);
  const columns = useColumns(edit, hold, see);
  return (
    <section>
      <Group justify="space-between" mb="sm">
        <Title order={2}>{t("queues.title")}</Title>
        <Act needs="admin" size="xs" variant="default" leftSection={<Icon name="plus" size={14} />} onClick={() => edit("new")}>
          {t("form.new")}
        </Act>
      </Group>
      <DataTable<QueueOut>
        label={t("queues.title")}
        queryKey={["queues", "list"]}
        fetchPage={(cursor, signal) => getQueues({ limit: 100, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(row) => row.name}
        empty={
          <EmptyState icon="queues" title={t("queues.empty")} command="horai queues set mail --max-concurrency 20 --rate 100/s">
            {t("queues.emptyHint")}
          </EmptyState>
        }
      />
      <QueueForm queue={edited} onClose={() => edit(null)} />
      <PauseQueue queue={held} onClose={() => hold(null)} />
      <Modal opened={seen !== null} onClose={() => see(null)} title={t("definitions:history.title")} size="lg">
        {seen !== null && <History kind="queue" name={seen} />}
      </Modal>
    </section>
  );
}

function useColumns(edit: (queue: QueueOut) => void, hold: (queue: QueueOut) => void, see: (name: string) => void): readonly Column<QueueOut>[] {
  const { t } = useTranslation(["queues", "common", "definitions"]);
  return useMemo(
    () => [
      {
        id: "name",
        header: t("column.queue"),
        width: "minmax(160px, 1.4fr)",
        cell: (row) => (
          <Group gap="xs" wrap="nowrap">
            <Go to="/instances" search={{ queue: row.name }} size="sm" title={row.name}>
              {row.name}
            </Go>
            {row.paused && <Status status="PAUSED" />}
            <Text span size="xs" c="dimmed" truncate title={[row.title, row.note].filter(Boolean).join("\n")}>
              {[row.title, row.note].filter(Boolean).join(" · ")}
            </Text>
          </Group>
        ),
      },
      { id: "waiting", header: t("column.waiting"), width: "104px", isNumeric: true, cell: (row) => <Waiting queue={row} /> },
      {
        id: "running",
        header: t("column.running"),
        width: "minmax(150px, 1fr)",
        cell: (row) => (
          <Go to="/instances" search={{ queue: row.name, state: "RUNNING" }} inherit title={t("queues.running", { name: row.name })}>
            <Meter used={row.running ?? null} of={row.maxConcurrency} label={t("column.running")} />
          </Go>
        ),
      },
      { id: "rate", header: t("column.rate"), width: "104px", cell: (row) => row.rate ?? <None /> },
      { id: "priority", header: t("column.priority"), width: "96px", cell: (row) => t(`common:priority.${row.priority}`) },
      {
        id: "act",
        header: <VisuallyHidden>{t("column.act")}</VisuallyHidden>,
        width: "280px",
        cell: (row) => (
          <Group gap="xs" justify="flex-end" wrap="nowrap">
            <Act needs="admin" size="compact-sm" variant="subtle" onClick={() => hold(row)}>
              {t(row.paused ? "pause.resume" : "pause.pause")}
            </Act>
            <Act needs="admin" size="compact-sm" variant="subtle" onClick={() => edit(row)}>
              {t("form.edit")}
            </Act>
            <Button size="compact-sm" variant="subtle" onClick={() => see(row.name)}>
              {t("definitions:history.act")}
            </Button>
          </Group>
        ),
      },
    ],
    [t, edit, hold, see],
  );
}

/** Counted up to a bound: beyond it only that there are more. */
const COUNTED = 1_000;

function Waiting({ queue }: { queue: QueueOut }) {
  const { i18n } = useTranslation();
  const number = new Intl.NumberFormat(i18n.language).format(queue.waiting ?? 0);
  return (queue.waiting ?? 0) > COUNTED ? `${new Intl.NumberFormat(i18n.language).format(COUNTED)}+` : number;
}

function None() {
  const { t } = useTranslation(["queues", "common", "definitions"]);
  return (
    <Text span size="sm" c="dimmed">
      {t("queues.unlimited")}
    </Text>
  );
}
