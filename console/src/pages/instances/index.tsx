import { Button, Group, Text } from "@mantine/core";
import { useCallback, useState } from "react";
import { useTranslation } from "react-i18next";
import { getInstances, type InstanceOut } from "@/api";
import { Act, DataTable, EmptyState, Icon, Page, useFilters } from "@/parts";
import { useInstanceColumns } from "./columns";
import { DownloadInstances } from "./Download";
import { Filters } from "./Filters";
import classes from "./Filters.module.css";
import { FILTERS, type InstanceFilters, isNarrow, isUpwards, liveIn, paramsOf, showsDead, viewOf } from "./filters";
import { ManyDialog } from "./ManyDialog";
import type { Many, Verb } from "./sweeping";

const PAGE = 100;
const NONE: ReadonlySet<string> = new Set();

export default function InstancesPage() {
  const { t } = useTranslation(["instances", "common"]);
  const [filters, change] = useFilters(FILTERS);
  const columns = useInstanceColumns();
  const [chosen, choose] = useState(NONE);
  const [many, setMany] = useState<Many | null>(null);
  const close = useCallback(() => {
    setMany(null);
    choose(NONE);
  }, []);
  return (
    <Page title={t("common:page.instances")} lead={t("lead")} actions={<Acts filters={filters} onMany={setMany} />}>
      <Filters />
      <DataTable<InstanceOut>
        label={t("common:page.instances")}
        queryKey={["instances", "list", filters]}
        fetchPage={(cursor, signal) => getInstances({ ...paramsOf(filters), limit: PAGE, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
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
      {chosen.size > 0 && <Chosen chosen={chosen} choose={choose} onMany={setMany} />}
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

interface ChosenProps {
  chosen: ReadonlySet<string>;
  choose: (chosen: ReadonlySet<string>) => void;
  onMany: (many: Many) => void;
}

function Chosen({ chosen, choose, onMany }: ChosenProps) {
  const { t } = useTranslation(["instances", "common"]);
  return (
    <Group gap="sm" role="status" className={classes.chosen}>
      <Text size="sm" className="numbers">
        {t("chosen", { number: chosen.size })}
      </Text>
      {(["replay", "cancel"] as const).map((verb) => (
        <Act key={verb} size="xs" variant="default" onClick={() => onMany({ verb, ids: [...chosen] })}>
          {t(`${verb}Many.chosen`)}
        </Act>
      ))}
      <Button size="xs" variant="subtle" onClick={() => choose(NONE)}>
        {t("unchoose")}
      </Button>
    </Group>
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
  if (isNarrow(filters)) {
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
