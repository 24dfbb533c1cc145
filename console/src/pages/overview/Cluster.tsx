import { Group, Skeleton, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { type NodeList, schedulerNodes, schedulerShards, type ShardOut } from "@/api";
import { ErrorView, Go, Panel, When } from "@/parts";
import classes from "./overview.module.css";

/** Which node holds which shard: a filled square dispatches, a hollow one triggers, a dashed one is nobody's. */
export function Cluster() {
  const { t } = useTranslation("overview");
  const nodes = useQuery({ queryKey: ["nodes", "list"], queryFn: ({ signal }) => schedulerNodes({ signal }) });
  const shards = useQuery({ queryKey: ["nodes", "shards"], queryFn: ({ signal }) => schedulerShards({ signal }) });
  const leases = shards.data?.items ?? [];
  const free = leases.filter((shard) => shard.node === null);
  return (
    <Panel
      title={t("cluster.title")}
      aside={
        <Go to="/queues" size="sm">
          {t("cluster.more")}
        </Go>
      }
    >
      <ErrorView error={nodes.error ?? shards.error} />
      {nodes.isPending && <Skeleton height={120} />}
      {nodes.data?.items.map((node) => (
        <NodeLine key={node.incarnation} node={node} shards={leases.filter((shard) => shard.node === node.incarnation)} />
      ))}
      {nodes.data?.items.length === 0 && (
        <Text size="sm" c="var(--horai-bad)">
          {t("cluster.nobody")}
        </Text>
      )}
      {free.length > 0 && nodes.data && (
        <div className={classes.node}>
          <Text size="sm" c="var(--horai-warn)">
            {t("cluster.free", { count: free.length })}
          </Text>
          <Shards shards={free} />
        </div>
      )}
    </Panel>
  );
}

function NodeLine({ node, shards }: { node: NodeList["items"][number]; shards: readonly ShardOut[] }) {
  const { t } = useTranslation("overview");
  return (
    <div className={classes.node}>
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <Text size="sm" fw={600} truncate title={node.name}>
          {node.name}
        </Text>
        <Text size="xs" c="dimmed" style={{ whiteSpace: "nowrap" }}>
          {t(node.draining ? "cluster.draining" : "cluster.since")} <When at={node.startedAt} as="relative" />
        </Text>
      </Group>
      <Text size="xs" c="dimmed" className="numbers">
        {t("cluster.load", { roles: node.roles.join(", "), busy: node.inFlight, slots: node.slots })}
      </Text>
      {shards.length > 0 && <Shards shards={shards} />}
    </div>
  );
}

function Shards({ shards }: { shards: readonly ShardOut[] }) {
  const { t } = useTranslation("overview");
  const count = (duty: ShardOut["duty"]): number => shards.filter((shard) => shard.duty === duty).length;
  return (
    <div
      className={classes.shards}
      role="img"
      aria-label={t("cluster.shards", { dispatch: count("dispatch"), trigger: count("trigger") })}
    >
      {shards.map((shard) => (
        <i key={shard.name} data-duty={shard.duty} data-free={shard.node === null || undefined} />
      ))}
    </div>
  );
}
