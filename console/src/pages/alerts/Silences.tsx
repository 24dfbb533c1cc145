import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { deleteSilence, getSilences, type SilenceOut } from "@/api";
import { useMay } from "@/live";
import { Act, type Column, ConfirmDialog, DataTable, EmptyState, Icon, RowMenu, When } from "@/parts";
import { Section } from "./Section";
import { SilenceForm } from "./SilenceForm";
import { matchedBy } from "./silence";

/** The silences that have not ended, newest first. */
export function Silences() {
  const { t } = useTranslation("alerts");
  const may = useMay();
  const queries = useQueryClient();
  const [isCreating, create] = useState(false);
  const [ended, end] = useState<SilenceOut | null>(null);
  const columns = useColumns(end);
  return (
    <Section
      title={t("silences.title")}
      aside={
        may("holds") && (
          <Act needs="holds" size="xs" onClick={() => create(true)} leftSection={<Icon name="plus" size={16} />}>
            {t("silence.create")}
          </Act>
        )
      }
    >
      <DataTable<SilenceOut>
        label={t("silences.title")}
        queryKey={["alerts", "live", "silences"]}
        fetchPage={(cursor, signal) => getSilences({ limit: 100, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(silence) => silence.id}
        empty={
          <EmptyState icon="pause" title={t("silences.none")} command='horai alerts silence --for 2h --job report --note "ticket 4711"'>
            {t("silences.explain")}
          </EmptyState>
        }
      />
      <SilenceForm opened={isCreating} of={{}} onClose={() => create(false)} />
      <ConfirmDialog
        opened={ended !== null}
        onClose={() => end(null)}
        title={t("silences.endTitle")}
        confirm={t("silences.end")}
        needs="holds"
        recipe={{ method: "DELETE", path: `/api/v1/alerts/silences/${ended?.id}`, cli: `horai alerts unsilence ${ended?.id}` }}
        onConfirm={async () => {
          await deleteSilence(ended?.id ?? "");
          await queries.invalidateQueries({ queryKey: ["alerts"] });
        }}
      >
        {t("silences.endExplain")}
      </ConfirmDialog>
    </Section>
  );
}

function useColumns(end: (silence: SilenceOut) => void): Column<SilenceOut>[] {
  const { t } = useTranslation("alerts");
  const may = useMay();
  return useMemo(
    () => [
      { id: "of", header: t("silences.of"), width: "minmax(160px, 1.5fr)", cell: (silence) => matchedBy(silence) || t("silences.all") },
      { id: "starts", header: t("silences.starts"), width: "190px", cell: (silence) => <When at={silence.startsAt} /> },
      { id: "ends", header: t("silences.ends"), width: "190px", cell: (silence) => <When at={silence.endsAt} /> },
      { id: "note", header: t("note"), width: "minmax(140px, 1.5fr)", cell: (silence) => silence.note },
      { id: "actor", header: t("silences.actor"), width: "minmax(100px, 1fr)", cell: (silence) => silence.actor },
      ...(may("holds")
        ? [
            {
              id: "acts",
              header: "",
              width: "56px",
              cell: (silence: SilenceOut) => (
                <RowMenu
                  label={t("silences.menu", { id: silence.id })}
                  acts={[{ icon: "play", label: t("silences.end"), needs: "holds", onClick: () => end(silence) }]}
                />
              ),
            },
          ]
        : []),
    ],
    [t, may, end],
  );
}
