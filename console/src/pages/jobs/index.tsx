import type { TFunction } from "i18next";
import { useCallback, useState } from "react";
import { useTranslation } from "react-i18next";
import { type GetJobCountParams, type GetJobsParams, getJobCount, getJobs, type JobSweepIn } from "@/api";
import { useOutdatedBy } from "@/live";
import { Act, DataTable, EmptyState, GoButton, Icon, Page, RowMenu, useFilters } from "@/parts";
import { Chosen } from "@/parts/Chosen";
import { useColumnChoice } from "@/parts/columnChoice";
import { ListTools } from "@/parts/ListTools";
import { useColumns } from "./columns";
import { type Asked, Dialogs } from "./dialogs";
import { DownloadJobs } from "./DownloadJobs";
import { FILTERS, Filters } from "./Filters";
import { type HoldVerb, type ManyJobs, ManyJobsDialog } from "./ManyJobs";
import { type OnceJobs, type OnceVerb, RunManyDialog } from "./RunMany";

const ORDER = ["order"] as const;
const NONE: ReadonlySet<string> = new Set();
const HOLDS = ["pause", "resume"] as const;
const ONCE = ["trigger", "delete"] as const;
/** The most jobs that one request names. */
const MOST_NAMED = 1_000;
const EXAMPLE = `horai jobs create hello --every 1m --url ${location.origin}/healthz --method GET`;

/** All jobs: when they fire, how they went, and what can be done with them. */
export default function JobsPage() {
  const { t } = useTranslation(["jobs", "common"]);
  const [asked, ask] = useState<Asked | null>(null);
  const [filters] = useFilters(FILTERS);
  const columns = useColumnChoice("jobs", useColumns(ask));
  useOutdatedBy("instances", ["jobs", "list"]);
  const [{ order }, change] = useFilters(ORDER);
  const { name, ...rest } = filters;
  const counted = { ...rest, ...(name && { nameContains: name }) } as GetJobCountParams;
  const wanted = { ...counted, ...(order && { order }) } as GetJobsParams;
  const params = { ...wanted, recent: 20, limit: 50 };
  const [chosen, choose] = useState(NONE);
  const [many, setMany] = useState<ManyJobs | null>(null);
  const [once, setOnce] = useState<OnceJobs | null>(null);
  const close = useCallback(() => {
    setMany(null);
    setOnce(null);
    choose(NONE);
  }, []);
  return (
    <Page
      title={t("common:page.jobs")}
      lead={t("lead")}
      actions={
        <>
          <DownloadJobs params={wanted} />
          {HOLDS.map((verb) => (
            <Act key={verb} variant="default" leftSection={<Icon name={verb === "pause" ? "pause" : "play"} size={16} />} why={whyNotAll(verb, filters, t)} onClick={() => setMany({ verb, only: sweptBy(filters) })}>
              {t(`${verb}Many.all`)}
            </Act>
          ))}
          <RowMenu
            label={t("manyMenu")}
            acts={ONCE.map((verb) => ({
              icon: verb === "trigger" ? "replay" : "trash",
              label: t(`${verb}Many.all`),
              isDangerous: verb === "delete",
              needs: verb === "delete" ? "admin" : "operator",
              why: whyNotAll(verb, filters, t),
              onClick: () => setOnce({ verb, only: sweptBy(filters) }),
            }))}
          />
          <GoButton to="/jobs/new" leftSection={<Icon name="plus" size={16} />}>
            {t("act.new")}
          </GoButton>
        </>
      }
    >
      <Filters />
      <ListTools list="jobs" columns={columns} />
      <DataTable
        label={t("common:page.jobs")}
        queryKey={["jobs", "list", params]}
        fetchPage={(cursor, signal) => getJobs(cursor ? { ...params, cursor } : params, { signal })}
        columns={columns.shown}
        total={{ key: ["jobs", counted], count: (signal) => getJobCount(counted, { signal }) }}
        idOf={(job) => job.name}
        selection={{ chosen, onChange: choose }}
        hrefOf={(job) => `/jobs/${encodeURIComponent(job.name)}`}
        order={{
          column: order?.startsWith("name") ? "name" : "created",
          isUp: order === undefined || order === "name" || order === "oldest",
          columns: ["name", "created"],
          onChange: (isUp, column) => change({ order: column === "name" ? (isUp ? "name" : "nameReversed") : isUp ? undefined : "newest" }),
        }}
        rowHeight={60}
        empty={<Nothing isFiltered={Object.keys(filters).length > 0} />}
      />
      <Chosen count={chosen.size} onClear={() => choose(NONE)}>
        {HOLDS.map((verb) => (
          <Act key={verb} size="xs" variant="default" onClick={() => setMany({ verb, only: { names: [...chosen].slice(0, MOST_NAMED) } })}>
            {t(`${verb}Many.chosen`)}
          </Act>
        ))}
        {ONCE.map((verb) => (
          <Act
            key={verb}
            size="xs"
            variant="default"
            needs={verb === "delete" ? "admin" : "operator"}
            onClick={() => setOnce({ verb, only: { names: [...chosen].slice(0, MOST_NAMED) } })}
          >
            {t(`${verb}Many.chosen`)}
          </Act>
        ))}
      </Chosen>
      {once && <RunManyDialog {...once} onClose={close} />}
      {many && <ManyJobsDialog {...many} onClose={close} />}
      <Dialogs asked={asked} onClose={() => ask(null)} />
    </Page>
  );
}

/** The filters as a bulk change takes them: the verb itself says in which status they are. */
function sweptBy({ name, tag, queue, owner }: Partial<Record<(typeof FILTERS)[number], string>>): JobSweepIn {
  return { ...(name && { nameContains: name }), ...(tag && { tag }), ...(queue && { queue }), ...(owner && { owner }) };
}

function whyNotAll(verb: HoldVerb | OnceVerb, filters: Partial<Record<(typeof FILTERS)[number], string>>, t: TFunction<["jobs", "common"]>): string | null {
  if (Object.keys(sweptBy(filters)).length === 0) return t(`${verb}Many.noFilter`);
  if (verb === "trigger" || verb === "delete") return filters.status ? t("manyStatus") : null;
  return filters.status === (verb === "pause" ? "PAUSED" : "ACTIVE") ? t(`${verb}Many.nothing`) : null;
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
