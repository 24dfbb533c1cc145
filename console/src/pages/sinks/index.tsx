import { Text } from "@mantine/core";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { getSinks, type SinkOut } from "@/api";
import { type Needs, useAskedEvery, useMay } from "@/live";
import { Act, type Column, DataTable, EmptyState, formatDuration, Icon, Page, type RowAct, RowMenu, When } from "@/parts";
import { placeOf } from "./draft";
import { ReplayDialog } from "./ReplayDialog";
import { SinkDialogs } from "./SinkDialogs";
import { SinkForm } from "./SinkForm";

const EVERY_MS = 5_000;
const ICONS = { ACTIVE: "play", PARKED: "warning", PAUSED: "pause" } as const;

export type SinkAct = "edit" | "pause" | "resume" | "replay" | "delete";
export interface Chosen {
  sink: SinkOut;
  act: SinkAct;
}

/** The receivers of the tenant's events, and how far each is behind. */
export default function SinksPage() {
  const { t } = useTranslation(["sinks", "common"]);
  const may = useMay();
  useAskedEvery(EVERY_MS, ["sinks"]);
  const [isCreating, create] = useState(false);
  const [chosen, choose] = useState<Chosen | null>(null);
  const columns = useColumns(choose);
  const changed = chosen?.act === "edit" ? chosen.sink : null;
  const close = (): void => {
    create(false);
    choose(null);
  };
  return (
    <Page
      title={t("common:page.sinks")}
      lead={t("lead")}
      actions={
        may("admin") && (
          <Act needs="admin" onClick={() => create(true)} leftSection={<Icon name="plus" size={16} />}>
            {t("create.act")}
          </Act>
        )
      }
    >
      <DataTable<SinkOut>
        label={t("sinks")}
        queryKey={["sinks", "list"]}
        fetchPage={(cursor, signal) => getSinks({ limit: 100, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(sink) => sink.name}
        rowHeight={60}
        empty={
          <EmptyState icon="external" title={t("empty.title")} command="horai sinks set monitoring --url https://example.com/events">
            {t("empty.explain")}
          </EmptyState>
        }
      />
      <SinkForm opened={isCreating || changed !== null} changed={changed} onClose={close} />
      <ReplayDialog sink={chosen?.act === "replay" ? chosen.sink : null} onClose={close} />
      <SinkDialogs chosen={chosen} onClose={close} />
    </Page>
  );
}

function useColumns(choose: (chosen: Chosen) => void): Column<SinkOut>[] {
  const { t, i18n } = useTranslation("sinks");
  const may = useMay();
  return useMemo(() => {
    const number = new Intl.NumberFormat(i18n.language);
    return [
      { id: "name", header: t("column.name"), width: "minmax(120px, 1fr)", cell: (sink) => sink.name },
      { id: "status", header: t("column.status"), width: "120px", cell: (sink) => <SinkStatus sink={sink} /> },
      { id: "place", header: t("column.place"), width: "minmax(180px, 2fr)", cell: (sink) => <SinkPlace sink={sink} /> },
      { id: "behind", header: t("column.behind"), width: "100px", isNumeric: true, cell: (sink) => number.format(sink.behind) },
      { id: "lag", header: t("column.lag"), width: "100px", isNumeric: true, cell: (sink) => formatDuration(sink.lagSeconds * 1_000) },
      { id: "delivered", header: t("column.delivered"), width: "140px", isNumeric: true, cell: (sink) => <Delivered sink={sink} /> },
      { id: "error", header: t("column.error"), width: "minmax(160px, 2fr)", cell: (sink) => <LastError sink={sink} /> },
      ...(may("operator") ? [{ id: "acts", header: "", width: "56px", cell: (sink: SinkOut) => <SinkMenu sink={sink} choose={choose} /> }] : []),
    ];
  }, [t, i18n.language, may, choose]);
}

/** The actions that the state of the sink and the role of the caller allow. */
function SinkMenu({ sink, choose }: { sink: SinkOut; choose: (chosen: Chosen) => void }) {
  const { t } = useTranslation("sinks");
  const may = useMay();
  const act = (icon: RowAct["icon"], name: SinkAct, needs: Needs): RowAct & { needs: Needs } => ({
    icon,
    label: t(`${name}.act`),
    needs,
    isDangerous: name === "delete",
    onClick: () => choose({ sink, act: name }),
  });
  const acts = [
    ...(sink.status === "PAUSED" ? [] : [act("pause", "pause", "operator")]),
    ...(sink.status === "ACTIVE" ? [] : [act("play", "resume", "operator")]),
    act("replay", "replay", "operator"),
    act("edit", "edit", "admin"),
    act("trash", "delete", "admin"),
  ];
  return <RowMenu label={t("menu", { name: sink.name })} acts={acts.filter(({ needs }) => may(needs))} />;
}

function SinkStatus({ sink }: { sink: SinkOut }) {
  const { t } = useTranslation("sinks");
  return (
    <Text span size="sm" style={{ display: "inline-flex", gap: 6, alignItems: "center" }}>
      <Icon name={ICONS[sink.status]} size={14} />
      {t(`status.${sink.status}`)}
    </Text>
  );
}

function SinkPlace({ sink }: { sink: SinkOut }) {
  const { t } = useTranslation("sinks");
  return (
    <>
      <Text size="sm" truncate title={placeOf(sink)}>
        {placeOf(sink) || t("log")}
      </Text>
      <Text size="xs" c="dimmed" truncate title={sink.types?.join(", ")}>
        {t(`kind.${sink.kind}`)} · {sink.types?.join(", ") ?? t("allTypes")}
      </Text>
    </>
  );
}

function Delivered({ sink }: { sink: SinkOut }) {
  const { i18n } = useTranslation("sinks");
  return (
    <>
      {new Intl.NumberFormat(i18n.language).format(sink.delivered)}
      {sink.deliveredAt !== null && (
        <Text size="xs" c="dimmed">
          <When at={sink.deliveredAt} as="relative" />
        </Text>
      )}
    </>
  );
}

function LastError({ sink }: { sink: SinkOut }) {
  const { t } = useTranslation("sinks");
  return (
    <>
      <Text size="sm" truncate title={sink.lastError ?? undefined}>
        {sink.lastError}
      </Text>
      {sink.failingSince !== null && (
        <Text size="xs" c="dimmed" truncate>
          {t("failures", { count: sink.failures })} · <When at={sink.failingSince} as="relative" />
        </Text>
      )}
    </>
  );
}
