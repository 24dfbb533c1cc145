import { Group, Text, Title } from "@mantine/core";
import { useCallback, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { type EntityOut, type GetEntitiesStatus, getEntities, getEntityCount, type JobOut } from "@/api";
import { Act, type Column, DataTable, Download, EmptyState, FilterBar, Go, Icon, RowMenu, StateMark, useFilters, When } from "@/parts";
import { Chosen } from "@/parts/Chosen";
import { useColumnChoice } from "@/parts/columnChoice";
import { ListTools } from "@/parts/ListTools";
import { AddEntity } from "./AddEntity";
import { ImportEntities } from "./ImportEntities";
import { RemoveEntity } from "./RemoveEntity";
import { type ManyEntities, RemoveMany } from "./RemoveMany";

const STATUSES = ["NOT_RUN", "RUNNING", "SUCCESS", "FAILED"] as const satisfies readonly NonNullable<GetEntitiesStatus>[];
const LOOKS = { NOT_RUN: "INIT", RUNNING: "RUNNING", SUCCESS: "SUCCESS", FAILED: "DEAD" } as const;
const AGES = ["1h", "6h", "1d", "7d", "10d", "30d"];
const IN_FILES = ["key", "status", "startTime", "finishTime", "refreshedAt", "remark", "batchNo", "instanceId", "createTime"] as const;
const NAMES = ["prefix", "status", "olderThan", "batch"] as const;
const ORDER = ["order"] as const;
const NONE: ReadonlySet<string> = new Set();
const ORDERS = ["stalest", "freshest"] as const;
/** By key first, then those that wait longest, then those that ran last. */
const NEXT = { key: "stalest", stalest: "freshest", freshest: undefined } as const;

type Asked = { act: "add" } | { act: "import" } | { act: "remove"; key: string };

/** The entities of a refresh job, by key. */
export function Entities({ job }: { job: JobOut }) {
  const { t } = useTranslation("refresh");
  const [filters] = useFilters(NAMES);
  const [asked, ask] = useState<Asked | null>(null);
  const columns = useColumnChoice("entities", useColumns(job, ask));
  const { status, ...texts } = filters;
  const [{ order: written }, change] = useFilters(ORDER);
  const order = ORDERS.find((each) => each === written) ?? "key";
  const narrowed = { ...texts, ...(STATUSES.some((each) => each === status) && { status: status as GetEntitiesStatus }) };
  const wanted = { ...narrowed, ...(order !== "key" && { order }) };
  const isFiltered = Object.keys(narrowed).length > 0;
  const close = (): void => ask(null);
  const [chosen, choose] = useState(NONE);
  const [many, setMany] = useState<ManyEntities | null>(null);
  const closeMany = useCallback(() => {
    setMany(null);
    choose(NONE);
  }, []);
  return (
    <>
      <Group justify="space-between" align="flex-end">
        <Title order={2}>{t("entities")}</Title>
        <Group gap="xs">
          <Download<EntityOut>
            name={`${job.name}-entities`}
            columns={IN_FILES}
            fetchPage={(cursor) => getEntities(job.id, { limit: 500, ...wanted, ...(cursor && { cursor }) })}
          />
          <Act
            variant="default"
            leftSection={<Icon name="trash" size={16} />}
            why={isFiltered ? null : t("removeMany.noFilter")}
            onClick={() => setMany({ filters: narrowed })}
          >
            {t("removeMany.all")}
          </Act>
          <Act variant="default" onClick={() => ask({ act: "import" })} leftSection={<Icon name="plus" size={16} />}>
            {t("import.act")}
          </Act>
          <Act variant="default" onClick={() => ask({ act: "add" })} leftSection={<Icon name="plus" size={16} />}>
            {t("add.act")}
          </Act>
        </Group>
      </Group>
      <FilterBar
        fields={[
          { kind: "text", name: "prefix", label: t("filter.prefix") },
          { kind: "choice", name: "status", label: t("filter.status"), options: STATUSES.map((value) => ({ value, label: t(`status.${value}`) })) },
          { kind: "choice", name: "olderThan", label: t("filter.olderThan"), options: AGES.map((value) => ({ value, label: value })) },
          { kind: "text", name: "batch", label: t("batch") },
        ]}
      />
      <ListTools list="entities" columns={columns} />
      <DataTable
        label={t("entities")}
        queryKey={["refresh", job.name, "entities", wanted]}
        fetchPage={(cursor, signal) => getEntities(job.id, { limit: 100, ...wanted, ...(cursor && { cursor }) }, { signal })}
        columns={columns.shown}
        total={{ key: ["entities", job.id, narrowed], count: (signal) => getEntityCount(job.id, narrowed, { signal }) }}
        order={{ column: order === "key" ? "key" : "refreshed", isUp: order !== "freshest", columns: ["refreshed"], onChange: () => change({ order: NEXT[order] }) }}
        idOf={(entity) => entity.key}
        selection={{ chosen, onChange: choose }}
        empty={
          <EmptyState icon="refresh" title={t(isFiltered ? "noneMatch" : "noEntities")} {...(!isFiltered && { command: `horai entities import ${job.name} products.csv` })}>
            {!isFiltered && t("entitiesExplain")}
          </EmptyState>
        }
      />
      <Chosen count={chosen.size} onClear={() => choose(NONE)}>
        <Act size="xs" variant="default" onClick={() => setMany({ keys: [...chosen] })}>
          {t("removeMany.chosen")}
        </Act>
      </Chosen>
      {many && <RemoveMany job={job} many={many} onClose={closeMany} />}
      {asked?.act === "add" && <AddEntity job={job} onClose={close} />}
      {asked?.act === "import" && <ImportEntities job={job} onClose={close} />}
      {asked?.act === "remove" && <RemoveEntity job={job} entity={asked.key} onClose={close} />}
    </>
  );
}

function useColumns(job: JobOut, ask: (asked: Asked) => void): Column<EntityOut>[] {
  const { t } = useTranslation("refresh");
  return useMemo(() => {
    const zone = job.timezone ?? null;
    return [
      { id: "key", header: t("column.key"), width: "minmax(180px, 1.4fr)", cell: (entity) => <span title={entity.key}>{entity.key}</span> },
      {
        id: "status",
        header: t("column.status"),
        width: "128px",
        cell: (entity) => (
          <Group gap={8} wrap="nowrap">
            <StateMark state={LOOKS[entity.status]} />
            <Text span size="sm">
              {t(`status.${entity.status}`)}
            </Text>
          </Group>
        ),
      },
      { id: "refreshed", header: t("column.refreshed"), width: "184px", cell: (entity) => <When at={entity.refreshedAt} zone={zone} /> },
      { id: "age", header: t("column.age"), width: "120px", cell: (entity) => <When at={entity.refreshedAt} as="relative" zone={zone} /> },
      {
        id: "instance",
        header: t("column.instance"),
        width: "112px",
        cell: (entity) =>
          entity.instanceId && (
            <Go to="/instances/$instance" params={{ instance: entity.instanceId }} size="sm" className="numbers">
              {entity.instanceId}
            </Go>
          ),
      },
      { id: "remark", header: t("column.remark"), width: "minmax(160px, 1.4fr)", cell: (entity) => <span title={entity.remark ?? ""}>{entity.remark}</span> },
      {
        id: "acts",
        isFixed: true,
        header: "",
        width: "56px",
        cell: (entity) => (
          <RowMenu
            label={t("menu", { key: entity.key })}
            acts={[{ icon: "trash", label: t("remove.act"), isDangerous: true, onClick: () => ask({ act: "remove", key: entity.key }) }]}
          />
        ),
      },
    ];
  }, [t, job.timezone, ask]);
}
