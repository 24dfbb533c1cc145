import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type GetJobsParams, getJobs } from "@/api";
import { useOutdatedBy } from "@/live";
import { DataTable, EmptyState, GoButton, Icon, Page, useFilters } from "@/parts";
import { useColumns } from "./columns";
import { type Asked, Dialogs } from "./dialogs";
import { DownloadJobs } from "./DownloadJobs";
import { FILTERS, Filters } from "./Filters";

const EXAMPLE = `horai jobs create hello --every 1m --url ${location.origin}/healthz --method GET`;

/** All jobs: when they fire, how they went, and what can be done with them. */
export default function JobsPage() {
  const { t } = useTranslation(["jobs", "common"]);
  const [asked, ask] = useState<Asked | null>(null);
  const [filters] = useFilters(FILTERS);
  const columns = useColumns(ask);
  useOutdatedBy("instances", ["jobs", "list"]);
  const { name, ...rest } = filters;
  const wanted = { ...rest, ...(name && { nameContains: name }) } as GetJobsParams;
  const params = { ...wanted, recent: 20, limit: 50 };
  return (
    <Page
      title={t("common:page.jobs")}
      lead={t("lead")}
      actions={
        <>
          <DownloadJobs params={wanted} />
          <GoButton to="/jobs/new" leftSection={<Icon name="plus" size={16} />}>
            {t("act.new")}
          </GoButton>
        </>
      }
    >
      <Filters />
      <DataTable
        label={t("common:page.jobs")}
        queryKey={["jobs", "list", params]}
        fetchPage={(cursor, signal) => getJobs(cursor ? { ...params, cursor } : params, { signal })}
        columns={columns}
        idOf={(job) => job.id}
        hrefOf={(job) => `/jobs/${encodeURIComponent(job.name)}`}
        rowHeight={60}
        empty={<Nothing isFiltered={Object.keys(filters).length > 0} />}
      />
      <Dialogs asked={asked} onClose={() => ask(null)} />
    </Page>
  );
}

function Nothing({ isFiltered }: { isFiltered: boolean }) {
  const { t } = useTranslation("jobs");
  return isFiltered ? (
    <EmptyState icon="filter" title={t("empty.filtered")}>
      {t("empty.filteredHint")}
    </EmptyState>
  ) : (
    <EmptyState
      icon="jobs"
      title={t("empty.title")}
      command={EXAMPLE}
      action={<GoButton to="/jobs/new">{t("act.new")}</GoButton>}
    >
      {t("empty.hint")}
    </EmptyState>
  );
}
