import { Table, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { RunNodeOut, RunOut } from "@/api";
import { Duration, formatDuration, Go, Panel, StateChip, WideTable } from "@/parts";
import { useProgress } from "../progress";
import type { ComparedNode } from "./differences";

interface ComparedNodesProps {
  workflow: string;
  left: RunOut;
  right: RunOut;
  nodes: readonly ComparedNode[];
}

/** The nodes of two runs: state, attempts and duration of each, and how much longer it took. */
export function ComparedNodes({ workflow, left, right, nodes }: ComparedNodesProps) {
  const { t } = useTranslation("workflows");
  return (
    <Panel title={t("compare.nodes")}>
      {nodes.length === 0 ? (
        <Text size="sm" c="dimmed">
          {t("compare.same")}
        </Text>
      ) : (
        <WideTable minWidth={720}>
          <Table verticalSpacing={6} aria-label={t("compare.nodes")}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>{t("form.nodeName")}</Table.Th>
                <Table.Th>{t("run.title", { id: left.id })}</Table.Th>
                <Table.Th>{t("run.title", { id: right.id })}</Table.Th>
                <Table.Th ta="right">{t("compare.difference")}</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {nodes.map((node) => (
                <Table.Tr key={node.name} data-different={node.isDifferent || undefined} bg={node.isDifferent ? "var(--horai-ground)" : undefined}>
                  <Table.Td style={{ overflowWrap: "anywhere" }}>
                    <Go to="/workflows/$workflow/nodes/$node" params={{ workflow, node: node.name }} size="sm" fw={node.isDifferent ? 600 : 400}>
                      {node.name}
                    </Go>
                  </Table.Td>
                  <Table.Td>
                    <Side workflow={workflow} run={left} node={node.left} />
                  </Table.Td>
                  <Table.Td>
                    <Side workflow={workflow} run={right} node={node.right} />
                  </Table.Td>
                  <Table.Td ta="right" className="numbers">
                    <Change node={node} />
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </WideTable>
      )}
    </Panel>
  );
}

function Side({ workflow, run, node }: { workflow: string; run: RunOut; node: RunNodeOut | null }) {
  const { t } = useTranslation("workflows");
  const progressOf = useProgress();
  if (!node) {
    return (
      <Text span size="sm" c="dimmed">
        {t("compare.missing")}
      </Text>
    );
  }
  return (
    <Text component="div" size="sm">
      <Go to="/workflows/$workflow/runs/$run" params={{ workflow, run: run.id }} search={{ node: node.name } as never} underline="never">
        <StateChip state={node.state} />
      </Go>{" "}
      <Duration ms={node.durationMs} />
      {node.attempt !== null && node.attempt > 1 && ` · ${t("compare.attempts", { number: node.attempt })}`}
      {node.map && ` · ${progressOf(node.map)}`}
      {node.errorCode && ` · ${node.errorCode}`}
    </Text>
  );
}

/** `+1.2 s (+40 %)`, where both sides have a duration. */
function Change({ node }: { node: ComparedNode }) {
  if (node.change === null) return <span aria-hidden>–</span>;
  const before = node.left?.durationMs ?? 0;
  const sign = node.change < 0 ? "−" : "+";
  const share = before > 0 ? ` (${sign}${Math.round((Math.abs(node.change) / before) * 100)} %)` : "";
  return <>{`${sign}${formatDuration(Math.abs(node.change))}${share}`}</>;
}
