import { Table, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { LostNodeOut } from "@/api";
import { Panel, When, WideTable } from "@/parts";
import { useNodes } from "./Nodes";

/** Nodes that missed their lease of late, and since when their work is with others. */
export function Lost() {
  const { t } = useTranslation(["queues", "common"]);
  const lost = useNodes().data?.lost ?? [];
  if (lost.length === 0) return null;
  return (
    <Panel title={t("lost.title")}>
      <WideTable minWidth={520}>
        <Table verticalSpacing="xs">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t("nodes.name")}</Table.Th>
              <Table.Th>{t("lost.lease")}</Table.Th>
              <Table.Th>{t("lost.fenced")}</Table.Th>
              <Table.Th>{t("lost.rescued")}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {lost.map((node) => (
              <Row key={node.incarnation} node={node} />
            ))}
          </Table.Tbody>
        </Table>
      </WideTable>
    </Panel>
  );
}

function Row({ node }: { node: LostNodeOut }) {
  return (
    <Table.Tr>
      <Table.Td>
        {node.name}{" "}
        <Text span size="xs" c="dimmed">
          {`${node.host}:${node.pid} #${node.incarnation}`}
        </Text>
      </Table.Td>
      <Table.Td>
        <When at={node.leaseUntil} />
      </Table.Td>
      <Table.Td>
        <When at={node.fencedAt} />
      </Table.Td>
      <Table.Td>
        <When at={node.rescuedAt} />
      </Table.Td>
    </Table.Tr>
  );
}
