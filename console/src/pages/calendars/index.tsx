import { Anchor } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { type CalendarOut, deleteCalendar, getCalendars } from "@/api";
import { useMay } from "@/live";
import { Act, type Column, ConfirmDialog, DataTable, EmptyState, Icon, Page, RowMenu, When } from "@/parts";
import { CalendarForm } from "./CalendarForm";
import { Month } from "./Month";

/** The calendars of the tenant, and the days of the one that is chosen. */
export default function CalendarsPage() {
  const { t } = useTranslation(["calendars", "common"]);
  const may = useMay();
  const queries = useQueryClient();
  const [shown, show] = useState<string | null>(null);
  const [isCreating, create] = useState(false);
  const [changed, edit] = useState<CalendarOut | null>(null);
  const [deleted, ask] = useState<CalendarOut | null>(null);
  const columns = useColumns(show, edit, ask);
  return (
    <Page
      title={t("common:page.calendars")}
      lead={t("lead")}
      actions={
        may("admin") && (
          <Act needs="admin" onClick={() => create(true)} leftSection={<Icon name="plus" size={16} />}>
            {t("create.act")}
          </Act>
        )
      }
    >
      <DataTable<CalendarOut>
        label={t("common:page.calendars")}
        queryKey={["calendars", "list"]}
        fetchPage={(cursor, signal) => getCalendars({ limit: 100, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(calendar) => calendar.name}
        empty={
          <EmptyState icon="calendar" title={t("empty.title")} command="horai calendars put cn-workdays --holiday 2026-10-01/2026-10-07 --workday 2026-10-10">
            {t("empty.explain")}
          </EmptyState>
        }
      />
      {shown !== null && <Month key={shown} name={shown} />}
      <CalendarForm opened={isCreating || changed !== null} changed={changed} onClose={() => (changed ? edit(null) : create(false))} />
      <ConfirmDialog
        opened={deleted !== null}
        onClose={() => ask(null)}
        title={t("delete.title", { name: deleted?.name })}
        confirm={t("delete.confirm")}
        needs="admin"
        isDangerous
        recipe={{ method: "DELETE", path: `/api/v1/calendars/${deleted?.name}`, cli: `horai calendars delete ${deleted?.name}` }}
        onConfirm={async () => {
          if (deleted === null) return;
          await deleteCalendar(deleted.name, { headers: { "If-Match": `"${deleted.version}"` } });
          if (shown === deleted.name) show(null);
          await queries.invalidateQueries({ queryKey: ["calendars", "list"] }); // the others may still ask for its days
        }}
      >
        {t("delete.explain")}
      </ConfirmDialog>
    </Page>
  );
}

type Choose = (calendar: CalendarOut) => void;

function useColumns(show: (name: string) => void, edit: Choose, ask: Choose): Column<CalendarOut>[] {
  const { t } = useTranslation("calendars");
  const may = useMay();
  return useMemo(
    () => [
      {
        id: "name",
        header: t("column.name"),
        width: "minmax(140px, 1.5fr)",
        cell: (calendar) => (
          <Anchor component="button" type="button" size="sm" truncate maw="100%" title={t("month.show")} onClick={() => show(calendar.name)}>
            {calendar.name}
          </Anchor>
        ),
      },
      { id: "holidays", header: t("column.holidays"), width: "110px", isNumeric: true, cell: (calendar) => String(calendar.holidays.length) },
      { id: "workdays", header: t("column.workdays"), width: "190px", isNumeric: true, cell: (calendar) => String(calendar.workdays.length) },
      {
        id: "weekend",
        header: t("column.weekend"),
        width: "minmax(140px, 1fr)",
        cell: (calendar) => calendar.weekend.map((day) => t(`weekday.${day}`)).join(", ") || t("noWeekend"),
      },
      { id: "hours", header: t("column.hours"), width: "minmax(160px, 1.5fr)", cell: (calendar) => calendar.hours?.["default"] ?? t("allDay") },
      { id: "updated", header: t("column.updated"), width: "140px", cell: (calendar) => <When at={calendar.updatedAt} as="relative" /> },
      ...(may("admin")
        ? [
            {
              id: "acts",
              header: "",
              width: "56px",
              cell: (calendar: CalendarOut) => (
                <RowMenu
                  label={t("menu", { name: calendar.name })}
                  acts={[
                    { icon: "edit", label: t("edit.act"), needs: "admin", onClick: () => edit(calendar) },
                    { icon: "trash", label: t("delete.act"), isDangerous: true, needs: "admin", onClick: () => ask(calendar) },
                  ]}
                />
              ),
            },
          ]
        : []),
    ],
    [t, may, show, edit, ask],
  );
}
