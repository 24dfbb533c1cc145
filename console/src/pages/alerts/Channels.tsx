import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { type ChannelOut, deleteChannel, getChannels } from "@/api";
import { type Needs, useMay } from "@/live";
import { Act, type Column, ConfirmDialog, DataTable, EmptyState, Icon, type RowAct, RowMenu } from "@/parts";
import { placeOf } from "./channel";
import { ChannelForm } from "./ChannelForm";
import { Section } from "./Section";
import { TestDialog } from "./TestDialog";

type ChannelAct = "test" | "edit" | "delete";
type Choose = (chosen: { channel: ChannelOut; act: ChannelAct }) => void;

/** The channels by name: created, changed, called for a test, and deleted. */
export function Channels() {
  const { t } = useTranslation("alerts");
  const may = useMay();
  const queries = useQueryClient();
  const [isCreating, create] = useState(false);
  const [chosen, choose] = useState<{ channel: ChannelOut; act: ChannelAct } | null>(null);
  const columns = useColumns(choose);
  const of = (act: ChannelAct): ChannelOut | null => (chosen?.act === act ? chosen.channel : null);
  const close = (): void => {
    create(false);
    choose(null);
  };
  const deleted = of("delete");
  return (
    <Section
      title={t("channels.title")}
      aside={
        may("keys") && (
          <Act needs="keys" size="xs" onClick={() => create(true)} leftSection={<Icon name="plus" size={16} />}>
            {t("channels.create")}
          </Act>
        )
      }
    >
      <DataTable<ChannelOut>
        label={t("channels.title")}
        queryKey={["alerts", "channels"]}
        fetchPage={(cursor, signal) => getChannels({ limit: 100, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(channel) => channel.name}
        empty={
          <EmptyState icon="alerts" title={t("channels.none")} command="horai alerts set-channel ops slack --url-file hook.url">
            {t("channels.explain")}
          </EmptyState>
        }
      />
      <ChannelForm opened={isCreating || of("edit") !== null} changed={of("edit")} onClose={close} />
      <TestDialog channel={of("test")} onClose={close} />
      <ConfirmDialog
        opened={deleted !== null}
        onClose={close}
        title={t("channels.deleteTitle", { name: deleted?.name })}
        confirm={t("channels.delete")}
        needs="keys"
        isDangerous
        recipe={{ method: "DELETE", path: `/api/v1/alerts/channels/${deleted?.name}`, cli: `horai alerts delete-channel ${deleted?.name}` }}
        onConfirm={async () => {
          if (deleted) await deleteChannel(deleted.name, { headers: { "If-Match": `"${deleted.version}"` } });
          await queries.invalidateQueries({ queryKey: ["alerts"] });
        }}
      >
        {t("channels.deleteExplain")}
      </ConfirmDialog>
    </Section>
  );
}

function useColumns(choose: Choose): Column<ChannelOut>[] {
  const { t } = useTranslation("alerts");
  const may = useMay();
  return useMemo(
    () => [
      { id: "name", header: t("name"), width: "minmax(120px, 1fr)", cell: (channel) => channel.name },
      { id: "kind", header: t("channels.kind"), width: "160px", cell: (channel) => t(`channelKind.${channel.kind}`) },
      { id: "place", header: t("channels.place"), width: "minmax(200px, 2fr)", cell: placeOf },
      { id: "language", header: t("channels.language"), width: "120px", cell: (channel) => t(`language.${channel.language}`) },
      ...(may("holds")
        ? [
            {
              id: "acts",
              header: "",
              width: "56px",
              cell: (channel: ChannelOut) => (
                <RowMenu
                  label={t("menu", { name: channel.name })}
                  acts={(
                    [
                      { icon: "play", label: t("test.act"), needs: "holds", onClick: () => choose({ channel, act: "test" }) },
                      { icon: "edit", label: t("edit"), needs: "keys", onClick: () => choose({ channel, act: "edit" }) },
                      { icon: "trash", label: t("delete"), isDangerous: true, needs: "keys", onClick: () => choose({ channel, act: "delete" }) },
                    ] satisfies (RowAct & { needs: Needs })[]
                  ).filter((act) => may(act.needs))}
                />
              ),
            },
          ]
        : []),
    ],
    [t, may, choose],
  );
}
