import { Badge, Group, Skeleton, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { type NodeList, schedulerNodes } from "@/api";
import { ErrorView, Meter, Panel, When, WideTable } from "@/parts";

type Node = NodeList["items"][number];

export function useNodes() {
  return useQuery({ queryKey: ["nodes"], queryFn: ({ signal }) => schedulerNodes({ signal }) });
}

/** Every process that lives: nodes of the cluster, and workers with their functions. */
export function Nodes() {
  const { t } = useTranslation(["queues", "common"]);
  const nodes = useNodes();
  return (
    <Panel title={t("nodes.title")}>
      <ErrorView error={nodes.error} onRetry={() => void nodes.refetch()} />
      {nodes.isPending && <Skeleton height={120} />}
      {nodes.data && (
          <WideTable minWidth={820}>
            <Table verticalSpacing="sm" layout="fixed">
              <Table.Thead>
                <Table.Tr>
                  <Table.Th w={210}>{t("nodes.name")}</Table.Th>
                  <Table.Th>{t("nodes.roles")}</Table.Th>
                  <Table.Th w={180}>{t("nodes.slots")}</Table.Th>
                  <Table.Th w={110}>{t("nodes.shards")}</Table.Th>
                  <Table.Th w={100}>{t("nodes.lease")}</Table.Th>
                  <Table.Th w={100}>{t("nodes.started")}</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {nodes.data.items.map((node) => (
                  <Row key={node.incarnation} node={node} />
                ))}
              </Table.Tbody>
            </Table>
          </WideTable>
      )}
    </Panel>
  );
}

function Row({ node }: { node: Node }) {
  const { t } = useTranslation(["queues", "common"]);
  const { dispatch, trigger } = node.shards;
  const functions = node.handlers?.filter((handler) => !handler.startsWith("horai:"));
  return (
    <Table.Tr style={{ verticalAlign: "top" }}>
      <Table.Td>
        <Text size="sm" fw={600}>
          {node.name}
        </Text>
        <Text size="xs" c="dimmed">
          {t("nodes.where", { host: node.host, pid: String(node.pid), incarnation: node.incarnation, version: node.version })}
        </Text>
      </Table.Td>
      <Table.Td>
        <Stack gap={6}>
          <Group gap={4}>
            {node.roles.map((role) => (
              <Badge key={role} variant="default" tt="none" fw={500}>
                {role}
              </Badge>
            ))}
            {node.draining && (
              <Badge color="orange" variant="light" tt="none" fw={500}>
                {t("nodes.draining")}
              </Badge>
            )}
          </Group>
          {functions && functions.length > 0 && (
            <Text size="xs" c="dimmed" maw={320}>
              {t("nodes.functions", { names: functions.join(", ") })}
            </Text>
          )}
        </Stack>
      </Table.Td>
      <Table.Td>
        <Meter used={node.inFlight} of={node.slots} label={t("nodes.slots")} />
      </Table.Td>
      <Table.Td className="numbers">
        {dispatch + trigger > 0 ? t("nodes.held", { dispatch, trigger }) : <span aria-hidden>–</span>}
      </Table.Td>
      <Table.Td>
        <When at={node.leaseUntil} as="relative" />
      </Table.Td>
      <Table.Td>
        <When at={node.startedAt} as="relative" />
      </Table.Td>
    </Table.Tr>
  );
}
