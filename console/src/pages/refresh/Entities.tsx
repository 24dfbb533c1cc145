import { Group, Text, Title } from "@mantine/core";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { type EntityOut, type GetEntitiesStatus, getEntities, type JobOut } from "@/api";
import { Act, type Column, DataTable, Download, EmptyState, FilterBar, Go, Icon, RowMenu, StateMark, useFilters, When } from "@/parts";
import { AddEntity } from "./AddEntity";
import { ImportEntities } from "./ImportEntities";
import { RemoveEntity } from "./RemoveEntity";

const STATUSES = ["NOT_RUN", "RUNNING", "SUCCESS", "FAILED"] as const satisfies readonly NonNullable<GetEntitiesStatus>[];
const LOOKS = { NOT_RUN: "INIT", RUNNING: "RUNNING", SUCCESS: "SUCCESS", FAILED: "DEAD" } as const;
const AGES = ["1h", "6h", "1d", "7d", "10d", "30d"];
const IN_FILES = ["key", "status", "startTime", "finishTime", "refreshedAt", "remark", "batchNo", "instanceId", "createTime"] as const;
const NAMES = ["prefix", "status", "olderThan", "batch"] as const;

type Asked = { act: "add" } | { act: "import" } | { act: "remove"; key: string };

/** The entities of a refresh job, by key. */
export function Entities({ job }: { job: JobOut }) {
  const { t } = useTranslation("refresh");
  const [filters] = useFilters(NAMES);
  const [asked, ask] = useState<Asked | null>(null);
  const columns = useColumns(job, ask);
  const { status, ...texts } = filters;
  const wanted = { ...texts, ...(STATUSES.some((each) => each === status) && { status: status as GetEntitiesStatus }) };
  const isFiltered = Object.keys(wanted).length > 0;
  const close = (): void => ask(null);
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
      <DataTable
        label={t("entities")}
        queryKey={["refresh", job.name, "entities", wanted]}
        fetchPage={(cursor, signal) => getEntities(job.id, { limit: 100, ...wanted, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(entity) => entity.key}
        empty={
          <EmptyState icon="refresh" title={t(isFiltered ? "noneMatch" : "noEntities")} {...(!isFiltered && { command: `horai entities import ${job.name} products.csv` })}>
            {!isFiltered && t("entitiesExplain")}
          </EmptyState>
        }
      />
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
