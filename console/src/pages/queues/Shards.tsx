import { SimpleGrid, Skeleton, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Fragment } from "react";
import { useTranslation } from "react-i18next";
import { schedulerShards, type ShardOut } from "@/api";
import { ErrorView, Panel } from "@/parts";
import classes from "./Shards.module.css";

const DUTIES = ["trigger", "dispatch"] as const;

/** Which node looks after which shard: a line per node, a cell per shard. */
export function Shards() {
  const { t } = useTranslation(["queues", "common"]);
  const shards = useQuery({ queryKey: ["nodes", "shards"], queryFn: ({ signal }) => schedulerShards({ signal }) });
  return (
    <Panel title={t("shards.title")}>
      <ErrorView error={shards.error} onRetry={() => void shards.refetch()} />
      {shards.isPending && <Skeleton height={64} />}
      {shards.data && (
        <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="xl">
          {DUTIES.map((duty) => (
            <Duty key={duty} duty={duty} shards={shards.data.items.filter((shard) => shard.duty === duty)} />
          ))}
        </SimpleGrid>
      )}
    </Panel>
  );
}

interface Holder {
  id: string | null;
  name: string;
  held: number;
}

function Duty({ duty, shards }: { duty: ShardOut["duty"]; shards: readonly ShardOut[] }) {
  const { t } = useTranslation(["queues", "common"]);
  const inOrder = shards.toSorted((one, other) => one.shard - other.shard);
  return (
    <div>
      <Text size="sm" c="dimmed" mb="xs">
        {t(`shards.${duty}`)}
      </Text>
      <div className={classes.map}>
        {holdersOf(inOrder, t("shards.nobody")).map((holder) => (
          <Fragment key={holder.id ?? ""}>
            <span>{holder.name}</span>
            <span className={classes.cells} aria-hidden>
              {inOrder.map((shard) => {
                const isHeld = shard.node === holder.id;
                return <i key={shard.shard} data-held={(isHeld && holder.id !== null) || undefined} data-free={(isHeld && holder.id === null) || undefined} />;
              })}
            </span>
            <span className="numbers">{t("shards.count", { held: holder.held, total: inOrder.length })}</span>
          </Fragment>
        ))}
      </div>
    </div>
  );
}

function holdersOf(shards: readonly ShardOut[], nobody: string): Holder[] {
  const holders = new Map<string | null, Holder>();
  for (const { node, nodeName } of shards) {
    const holder = holders.get(node) ?? { id: node, name: nodeName ?? nobody, held: 0 };
    holders.set(node, { ...holder, held: holder.held + 1 });
  }
  return [...holders.values()].toSorted((one, other) => one.name.localeCompare(other.name));
}
