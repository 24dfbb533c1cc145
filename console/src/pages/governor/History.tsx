import { Title } from "@mantine/core";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { getModeHistory, type ModeChangeOut } from "@/api";
import { wordsOf } from "@/i18n";
import { type Column, DataTable, EmptyState, When } from "@/parts";

/** Entries into modes and exits from them, newest first. */
export function History() {
  const { t } = useTranslation("governor");
  const columns = useColumns();
  return (
    <section>
      <Title order={2} mb="sm">
        {t("history.title")}
      </Title>
      <DataTable<ModeChangeOut>
        label={t("history.title")}
        queryKey={["governor", "history"]}
        fetchPage={(cursor, signal) => getModeHistory({ limit: 100, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(row) => `${row.at} ${row.mode} ${row.dryRun}`}
        empty={
          <EmptyState icon="governor" title={t("history.empty")}>
            {t("history.emptyHint")}
          </EmptyState>
        }
      />
    </section>
  );
}

function useColumns(): Column<ModeChangeOut>[] {
  const { t } = useTranslation("governor");
  return useMemo(
    () => [
      { id: "at", header: t("history.at"), width: "200px", cell: (row) => <When at={row.at} /> },
      { id: "mode", header: t("modes.mode"), width: "190px", cell: (row) => row.mode },
      {
        id: "level",
        header: t("modes.level"),
        width: "190px",
        cell: (row) => `${row.level > 0 ? t("modes.active", { level: row.level }) : t("history.left")}${row.dryRun ? ` (${t("modes.dryRun")})` : ""}`,
      },
      {
        id: "cause",
        header: t("history.cause"),
        width: "minmax(240px, 1fr)",
        cell: (row) => (row.cause === null ? "" : wordsOf(row.cause.text, row.cause.textSaid)),
      },
    ],
    [t],
  );
}
