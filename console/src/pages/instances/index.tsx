import { useCallback, useState } from "react";
import { useTranslation } from "react-i18next";
import { getInstanceCount, getInstances, type InstanceOut } from "@/api";
import { Act, DataTable, EmptyState, Icon, Page, useFilters } from "@/parts";
import { Chosen } from "@/parts/Chosen";
import { useColumnChoice } from "@/parts/columnChoice";
import { ListTools } from "@/parts/ListTools";
import { useInstanceColumns } from "./columns";
import { DownloadInstances } from "./Download";
import { Filters } from "./Filters";
import { countedBy, FILTERS, type InstanceFilters, isNarrow, isUpwards, liveIn, paramsOf, showsDead, viewOf } from "./filters";
import { ManyDialog } from "./ManyDialog";
import type { Many, Verb } from "./sweeping";

const PAGE = 100;
const NONE: ReadonlySet<string> = new Set();

export default function InstancesPage() {
  const { t } = useTranslation(["instances", "common"]);
  const [filters, change] = useFilters(FILTERS);
  const columns = useColumnChoice("instances", useInstanceColumns());
  const counted = countedBy(filters);
  const [chosen, choose] = useState(NONE);
  const [many, setMany] = useState<Many | null>(null);
  const close = useCallback(() => {
    setMany(null);
    choose(NONE);
  }, []);
  return (
    <Page title={t("common:page.instances")} lead={t("lead")} actions={<Acts filters={filters} onMany={setMany} />}>
      <Filters />
      <ListTools list="instances" columns={columns} start={{ at: filters.at, onChange: (at) => change({ when: viewOf(filters), at }) }} />
      <DataTable<InstanceOut>
        label={t("common:page.instances")}
        queryKey={["instances", "list", filters]}
        fetchPage={(cursor, signal) => getInstances({ ...paramsOf(filters), limit: PAGE, ...(cursor && { cursor }) }, { signal })}
        columns={columns.shown}
        total={{ key: ["instances", counted], count: (signal) => getInstanceCount(counted, { signal }) }}
        isPart={filters.at !== undefined}
        idOf={(row) => row.id}
        hrefOf={(row) => `/instances/${row.id}`}
        selection={{ chosen, onChange: choose }}
        order={{
          column: "fire",
          isUp: isUpwards(filters),
          onChange: (isUp) => change({ when: viewOf(filters), order: isUp ? "oldest" : "newest" }),
        }}
        empty={<Nothing filters={filters} />}
      />
      <Chosen count={chosen.size} onClear={() => choose(NONE)}>
        {(["replay", "cancel"] as const).map((verb) => (
          <Act key={verb} size="xs" variant="default" onClick={() => setMany({ verb, ids: [...chosen] })}>
            {t(`${verb}Many.chosen`)}
          </Act>
        ))}
      </Chosen>
      <ManyDialog many={many} onClose={close} />
    </Page>
  );
}

interface ActsProps {
  filters: InstanceFilters;
  onMany: (many: Many) => void;
}

function Acts({ filters, onMany }: ActsProps) {
  const { t } = useTranslation(["instances", "common"]);
  return (
    <>
      <DownloadInstances filters={filters} />
      {(["replay", "cancel"] as const).map((verb) => {
        const why = whyNotAll(verb, filters);
        return (
          <Act
            key={verb}
            variant="default"
            leftSection={<Icon name={verb === "cancel" ? "close" : "replay"} size={16} />}
            why={why && t(`${verb}Many.${why}`)}
            onClick={() => onMany({ verb, filters })}
          >
            {t(`${verb}Many.all`)}
          </Act>
        );
      })}
    </>
  );
}

/** Everything at once is refused, and so is what a filter does not show. */
function whyNotAll(verb: Verb, filters: InstanceFilters): "noFilter" | "none" | null {
  if (!isNarrow(filters)) return "noFilter";
  const isThere = verb === "cancel" ? liveIn(filters).length > 0 : showsDead(filters);
  return isThere ? null : "none";
}

function Nothing({ filters }: { filters: InstanceFilters }) {
  const { t } = useTranslation(["instances", "common"]);
  const view = viewOf(filters);
  if (isNarrow(filters) || filters.at) {
    return (
      <EmptyState icon="filter" title={t("empty.filtered")}>
        {t(view === "all" ? "empty.filteredHint" : `empty.elsewhere.${view}`)}
      </EmptyState>
    );
  }
  return (
    <EmptyState icon="instances" title={t(`empty.title.${view}`)} command={COMMAND}>
      {t("empty.hint")}
    </EmptyState>
  );
}

const COMMAND = "horai instances put my_job customer:42 --in 10m --payload '{\"customer\": 42}'";
