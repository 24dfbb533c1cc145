import { Button, Group, SegmentedControl, Stack } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { getLetterCount, getLetters, type LetterOut } from "@/api";
import { Act, DataTable, Download, EmptyState, type FilterField, FilterInput, Icon, JobSelect, Page, useFilters } from "@/parts";
import { Chosen } from "@/parts/Chosen";
import { useColumnChoice } from "@/parts/columnChoice";
import { ListTools } from "@/parts/ListTools";
import { TimeRange } from "@/parts/TimeRange";
import { useLetterColumns } from "./columns";
import { DiscardMany } from "./DiscardMany";
import { Faults } from "./Faults";
import { countedBy, FILTERS, isNarrow, isUpwards, type LetterFilters, paramsOf, type Status, STATUSES, statusOf } from "./filters";
import { ReplayMany } from "./ReplayMany";
import type { Meant } from "./settling";

const PAGE = 100;
const NONE: ReadonlySet<string> = new Set();
const IN_FILES = ["id", "createdAt", "job", "key", "instanceId", "errorCode", "errorMsg", "tags", "replayStatus", "replayedAs", "reason"] as const;

export default function DeadLettersPage() {
  const { t } = useTranslation(["dead-letters", "common"]);
  const [filters, change] = useFilters(FILTERS);
  const status = statusOf(filters);
  const columns = useColumnChoice("dead-letters", useLetterColumns());
  const counted = countedBy(filters, status);
  const [replaying, setReplaying] = useState<Meant | null>(null);
  const [discarding, setDiscarding] = useState<Meant | null>(null);
  const [chosen, setChosen] = useState(NONE);
  const close = (): void => {
    setReplaying(null);
    setDiscarding(null);
    setChosen(NONE);
  };
  const pageOf = (limit: number) => (cursor: string | null | undefined, signal?: AbortSignal) =>
    getLetters({ ...paramsOf(filters, status), limit, ...(cursor && { cursor }) }, signal && { signal });
  return (
    <Page
      title={t("common:page.dead-letters")}
      lead={t("lead")}
      actions={
        <>
          <Download name="dead-letters" fetchPage={pageOf(500)} columns={IN_FILES} />
          <Act
            variant="default"
            leftSection={<Icon name="trash" size={16} />}
            why={isNarrow(filters) ? null : t("discard.noFilter")}
            onClick={() => setDiscarding({ filters })}
          >
            {t("discard.matching")}
          </Act>
          <Act leftSection={<Icon name="replay" size={16} />} onClick={() => setReplaying({ filters })}>
            {t(isNarrow(filters) ? "replay.matching" : "replay.all")}
          </Act>
        </>
      }
    >
      <Filters filters={filters} status={status} />
      <Faults filters={filters} status={status} onReplay={(only) => setReplaying({ filters: only })} onDiscard={(only) => setDiscarding({ filters: only })} />
      <ListTools list="dead-letters" columns={columns} start={{ at: filters.at, onChange: (at) => change({ at }) }} />
      <DataTable<LetterOut>
        label={t("common:page.dead-letters")}
        queryKey={["dead-letters", "list", filters, status]}
        fetchPage={pageOf(PAGE)}
        columns={columns.shown}
        total={{ key: ["dead-letters", counted], count: (signal) => getLetterCount(counted, { signal }) }}
        isPart={filters.at !== undefined}
        order={{ column: "at", isUp: isUpwards(filters), onChange: (isUp) => change({ order: isUp ? "oldest" : undefined }) }}
        idOf={(row) => row.id}
        selection={{ chosen, onChange: setChosen }}
        hrefOf={(row) => `/dead-letters/${row.id}`}
        empty={<Nothing isFiltered={isNarrow(filters) || status !== "NEW" || filters.at !== undefined} />}
      />
      <Chosen count={chosen.size} onClear={() => setChosen(NONE)}>
        <Act size="xs" variant="default" onClick={() => setReplaying({ ids: [...chosen] })}>
          {t("replay.chosen")}
        </Act>
        <Act size="xs" variant="default" onClick={() => setDiscarding({ ids: [...chosen] })}>
          {t("discard.chosen")}
        </Act>
      </Chosen>
      <ReplayMany meant={replaying} onClose={close} />
      <DiscardMany meant={discarding} onClose={close} />
    </Page>
  );
}

function Filters({ filters, status }: { filters: LetterFilters; status: Status }) {
  const { t } = useTranslation(["dead-letters", "common"]);
  const [, change] = useFilters(FILTERS);
  const input = (field: FilterField & { name: (typeof FILTERS)[number] }) => (
    <FilterInput field={field} value={filters[field.name] ?? ""} onChange={(value) => change({ [field.name]: value })} />
  );
  return (
    <Stack gap="sm" role="search">
      <div style={{ overflowX: "auto" }}>
        <SegmentedControl
          aria-label={t("column.status")}
          value={status}
          onChange={(chosen) => change({ status: chosen === "NEW" ? undefined : chosen })}
          data={STATUSES.map((value) => ({ value, label: t(`status.${value}`) }))}
          w="fit-content"
          size="sm"
        />
      </div>
      <Group gap="sm" align="flex-end">
        <JobSelect label={t("filter.job")} w={220} value={filters.job ?? ""} onChange={(job) => change({ job })} />
        {input({ kind: "text", name: "tag", label: t("filter.tag"), width: 140 })}
        {input({ kind: "text", name: "errorCode", label: t("filter.errorCode"), width: 200 })}
        {input({ kind: "text", name: "instance", label: t("filter.instance"), width: 120 })}
        <TimeRange label={t("filter.range")} from={filters.from} to={filters.to} onChange={change} />
        {filters.fingerprint && input({ kind: "text", name: "fingerprint", label: t("filter.fingerprint"), width: 190 })}
        {isNarrow(filters) && (
          <Button
            variant="subtle"
            color="gray"
            leftSection={<Icon name="close" size={16} />}
            onClick={() => change(Object.fromEntries(FILTERS.map((name) => [name, undefined])))}
          >
            {t("common:filter.clear")}
          </Button>
        )}
      </Group>
    </Stack>
  );
}

function Nothing({ isFiltered }: { isFiltered: boolean }) {
  const { t } = useTranslation(["dead-letters", "common"]);
  if (isFiltered) {
    return (
      <EmptyState icon="filter" title={t("empty.filtered")}>
        {t("empty.filteredHint")}
      </EmptyState>
    );
  }
  return (
    <EmptyState icon="deadLetters" title={t("empty.title")} command="horai dlq list --status NEW">
      {t("empty.hint")}
    </EmptyState>
  );
}
