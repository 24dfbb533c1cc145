import { Button, Group, Text } from "@mantine/core";
import { useCallback, useState } from "react";
import { useTranslation } from "react-i18next";
import { getInstances, type InstanceOut } from "@/api";
import { Act, DataTable, EmptyState, Icon, Page, useFilters } from "@/parts";
import { CancelMany, type Many } from "./CancelMany";
import { useInstanceColumns } from "./columns";
import { DownloadInstances } from "./Download";
import { Filters } from "./Filters";
import classes from "./Filters.module.css";
import { FILTERS, type InstanceFilters, isNarrow, liveIn, paramsOf } from "./filters";

const PAGE = 100;
const NONE: ReadonlySet<string> = new Set();

export default function InstancesPage() {
  const { t } = useTranslation(["instances", "common"]);
  const [filters] = useFilters(FILTERS);
  const columns = useInstanceColumns();
  const [chosen, choose] = useState(NONE);
  const [many, setMany] = useState<Many | null>(null);
  const close = useCallback(() => {
    setMany(null);
    choose(NONE);
  }, []);
  const actions = (
    <>
      <DownloadInstances filters={filters} />
      <Act
        variant="default"
        leftSection={<Icon name="close" size={16} />}
        why={whyNotAll(filters) && t(`cancelMany.${whyNotAll(filters)!}`)}
        onClick={() => setMany({ filters })}
      >
        {t("cancelMany.all")}
      </Act>
    </>
  );
  return (
    <Page title={t("common:page.instances")} lead={t("lead")} actions={actions}>
      <Filters />
      <DataTable<InstanceOut>
        label={t("common:page.instances")}
        queryKey={["instances", "list", filters]}
        fetchPage={(cursor, signal) => getInstances({ ...paramsOf(filters), limit: PAGE, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(row) => row.id}
        hrefOf={(row) => `/instances/${row.id}`}
        selection={{ chosen, onChange: choose }}
        empty={<Nothing filters={filters} />}
      />
      {chosen.size > 0 && (
        <Group gap="sm" role="status" className={classes.chosen}>
          <Text size="sm" className="numbers">
            {t("chosen", { number: chosen.size })}
          </Text>
          <Act size="xs" variant="default" onClick={() => setMany({ ids: [...chosen] })}>
            {t("cancelMany.chosen")}
          </Act>
          <Button size="xs" variant="subtle" onClick={() => choose(NONE)}>
            {t("unchoose")}
          </Button>
        </Group>
      )}
      <CancelMany many={many} onClose={close} />
    </Page>
  );
}

/** Everything at once is refused, and so is what has ended. */
function whyNotAll(filters: InstanceFilters): "noFilter" | "allFinal" | null {
  if (!isNarrow(filters)) return "noFilter";
  return liveIn(filters).length === 0 ? "allFinal" : null;
}

function Nothing({ filters }: { filters: InstanceFilters }) {
  const { t } = useTranslation(["instances", "common"]);
  if (isNarrow(filters)) {
    return (
      <EmptyState icon="filter" title={t("empty.filtered")}>
        {t("empty.filteredHint")}
      </EmptyState>
    );
  }
  return (
    <EmptyState icon="instances" title={t("empty.title")} command={COMMAND}>
      {t("empty.hint")}
    </EmptyState>
  );
}

const COMMAND = "horai instances put my_job customer:42 --in 10m --payload '{\"customer\": 42}'";
