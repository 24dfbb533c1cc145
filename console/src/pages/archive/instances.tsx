import { Group } from "@mantine/core";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { getInstances, type InstanceOut } from "@/api";
import { Crumb, type Column, DataTable, EmptyState, FilterInput, Go, JobSelect, Page, useFilters } from "@/parts";
import { TimeRange } from "@/parts/TimeRange";
import { useInstanceColumns } from "../instances/columns";

const FILTERS = ["from", "to", "job", "key"] as const;

/** Archived instances of a range of fire times. They have no page of their own: the database holds them no longer. */
export default function ArchivedInstancesPage() {
  const { t } = useTranslation(["archive", "common", "instances"]);
  const [{ from, to, job, key }, change] = useFilters(FILTERS);
  const columns = useColumns();
  const range = from && to ? { from, to } : null;
  return (
    <Page
      title={t("day.title")}
      lead={t("day.lead")}
      above={
        <Crumb>
          <Go to="/archive" size="sm">
            {t("common:page.archive")}
          </Go>
        </Crumb>
      }
    >
      <Group gap="sm" align="flex-end" role="search">
        <TimeRange label={t("instances:filter.range")} from={from} to={to} onChange={change} />
        <JobSelect label={t("instances:column.job")} w={220} value={job ?? ""} onChange={(name) => change({ job: name })} />
        <FilterInput
          field={{ kind: "text", name: "key", label: t("instances:filter.key"), width: 200 }}
          value={key ?? ""}
          onChange={(prefix) => change({ key: prefix })}
        />
      </Group>
      {range ? (
        <DataTable<InstanceOut>
          label={t("day.title")}
          queryKey={["archive", "instances", from, to, job, key]}
          fetchPage={(cursor, signal) =>
            getInstances({ ...range, archived: true, limit: 100, ...(job && { job }), ...(key && { keyPrefix: key }), ...(cursor && { cursor }) }, { signal })
          }
          columns={columns}
          idOf={(row) => row.id}
          empty={
            <EmptyState icon="filter" title={t("day.empty")}>
              {t("day.emptyHint")}
            </EmptyState>
          }
        />
      ) : (
        <EmptyState icon="filter" title={t("day.noRange")}>
          {t("day.noRangeHint")}
        </EmptyState>
      )}
    </Page>
  );
}

/** The columns of other lists of instances, with a key that leads nowhere. */
function useColumns(): Column<InstanceOut>[] {
  const columns = useInstanceColumns();
  return useMemo(
    () => columns.filter((column) => !column.isOptional).map((column) => (column.id === "key" ? { ...column, cell: (row) => row.key ?? `#${row.id}` } : column)),
    [columns],
  );
}
