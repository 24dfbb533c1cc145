import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { type ArchiveFileOut, getArchive, type GetArchiveParams, removeRestoredDay } from "@/api";
import { type Column, ConfirmDialog, DataTable, EmptyState, FilterBar, Page, RowLink, RowMenu, useFilters, When } from "@/parts";
import { RestoreDialog } from "./RestoreDialog";
import { sizeOf } from "./size";

const TABLES = ["instance_history", "attempt", "event", "note"] as const;

/** The files that the archive has of the tenant; a day of instances can be read, or restored for SQL. */
export default function ArchivePage() {
  const { t } = useTranslation(["archive", "common"]);
  const [filters] = useFilters(["table"]);
  const table = TABLES.find((name) => name === filters.table);
  const [restored, restore] = useState<ArchiveFileOut | null>(null);
  const [removed, remove] = useState<ArchiveFileOut | null>(null);
  const columns = useColumns(restore, remove);
  const asked: GetArchiveParams = { limit: 100, ...(table && { table }) };
  return (
    <Page title={t("common:page.archive")} lead={t("lead")}>
      <FilterBar
        fields={[{ kind: "choice", name: "table", label: t("filter.table"), options: TABLES.map((value) => ({ value, label: t(`table.${value}`) })) }]}
      />
      <DataTable<ArchiveFileOut>
        label={t("files")}
        queryKey={["archive", "files", table ?? ""]}
        fetchPage={(cursor, signal) => getArchive({ ...asked, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(file) => file.id}
        empty={
          <EmptyState icon="archive" title={t("empty.title")} command="horai up --archive-dir archive">
            {t("empty.explain")}
          </EmptyState>
        }
      />
      {restored && <RestoreDialog file={restored} onClose={() => restore(null)} />}
      <ConfirmDialog
        opened={removed !== null}
        onClose={() => remove(null)}
        title={t("remove.title", { day: removed?.day })}
        confirm={t("remove.confirm")}
        needs="admin"
        isDangerous
        recipe={{ method: "DELETE", path: `/api/v1/archive/restored/${removed?.day ?? ""}`, cli: `horai archive restore ${removed?.day ?? ""} --remove` }}
        onConfirm={() => removeRestoredDay(removed?.day ?? "")}
      >
        {t("remove.explain")}
      </ConfirmDialog>
    </Page>
  );
}

/** The address of a day's archived instances; a range of the list ends before its second instant. */
function instancesOf(file: ArchiveFileOut): string | null {
  if (file.table !== "instance_history" || !file.fromTime || !file.toTime) return null;
  const until = new Date(Date.parse(file.toTime) + 1_000).toISOString();
  return `/archive/instances?${new URLSearchParams({ from: file.fromTime, to: until })}`;
}

function useColumns(restore: (file: ArchiveFileOut) => void, remove: (file: ArchiveFileOut) => void): Column<ArchiveFileOut>[] {
  const { t, i18n } = useTranslation("archive");
  return useMemo(() => {
    const number = new Intl.NumberFormat(i18n.language);
    return [
      { id: "day", header: t("column.day"), width: "128px", cell: (file) => <Day file={file} /> },
      { id: "table", header: t("column.table"), width: "minmax(112px, 1fr)", cell: (file) => t(`table.${file.table}`) },
      { id: "rows", header: t("column.rows"), width: "112px", isNumeric: true, cell: (file) => number.format(file.rows) },
      { id: "size", header: t("column.size"), width: "112px", isNumeric: true, cell: (file) => sizeOf(file.bytes, i18n.language) },
      { id: "archived", isWideOnly: true, header: t("column.archived"), width: "188px", cell: (file) => <When at={file.archivedAt} /> },
      { id: "path", isWideOnly: true, header: t("column.path"), width: "minmax(160px, 2fr)", cell: (file) => <span title={file.sha256}>{file.path}</span> },
      {
        id: "acts",
        header: "",
        width: "56px",
        cell: (file) =>
          file.table === "instance_history" && (
            <RowMenu
              label={t("menu", { table: t(`table.${file.table}`), day: file.day })}
              acts={[
                { icon: "download", label: t("restore.act"), needs: "admin", onClick: () => restore(file) },
                { icon: "trash", label: t("remove.act"), needs: "admin", isDangerous: true, onClick: () => remove(file) },
              ]}
            />
          ),
      },
    ];
  }, [t, i18n.language, restore, remove]);
}

function Day({ file }: { file: ArchiveFileOut }) {
  const instances = instancesOf(file);
  return instances ? <RowLink href={instances}>{file.day}</RowLink> : file.day;
}
