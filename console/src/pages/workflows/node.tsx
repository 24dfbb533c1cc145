import { Skeleton, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { getNodeRuns, type NodeRunOut } from "@/api";
import { Crumb, Duration, ErrorView, formatDuration, Go, Page, Panel, StateChip, When, WideTable } from "@/parts";
import { Chart } from "@/parts/Chart";
import { useProgress } from "./progress";

/** A node over the last runs of its workflow: how long it took, and how it ended. */
export default function NodePage() {
  const { workflow, node } = useParams({ from: "/workflows/$workflow/nodes/$node" });
  const { t } = useTranslation(["workflows", "common"]);
  const found = useQuery({ queryKey: ["workflows", workflow, "node", node], queryFn: ({ signal }) => getNodeRuns(workflow, node, {}, { signal }) });
  return (
    <Page
      title={node}
      lead={t("trend.lead")}
      above={
        <Crumb>
          <Go to="/workflows" size="sm">{t("common:page.workflows")}</Go>
          {" / "}
          <Go to="/workflows/$workflow" params={{ workflow }} size="sm">{workflow}</Go>
        </Crumb>
      }
    >
      <ErrorView error={found.error} onRetry={() => void found.refetch()} />
      {found.isPending && <Skeleton height={320} />}
      {found.data && (
        <Stack gap="lg">
          <Trend items={found.data.items} />
          <Listed workflow={workflow} node={node} items={found.data.items} />
        </Stack>
      )}
    </Page>
  );
}

function Trend({ items }: { items: readonly NodeRunOut[] }) {
  const { t } = useTranslation("workflows");
  const { times, series } = useMemo(() => {
    const ended = items.filter((one) => one.durationMs !== null).toReversed();
    const line = { label: t("trend.duration"), colour: "var(--mantine-primary-color-filled)", isFilled: true };
    return { times: ended.map((one) => new Date(one.fireTime).getTime() / 1_000), series: [{ ...line, values: ended.map((one) => one.durationMs) }] };
  }, [items, t]);
  return (
    <Panel title={t("trend.duration")}>
      {times.length < 2 ? (
        <Text size="sm" c="dimmed">
          {t("trend.tooFew")}
        </Text>
      ) : (
        <Chart label={t("trend.duration")} times={times} series={series} height={200} format={formatDuration} />
      )}
    </Panel>
  );
}

function Listed({ workflow, node, items }: { workflow: string; node: string; items: readonly NodeRunOut[] }) {
  const { t } = useTranslation("workflows");
  const progressOf = useProgress();
  return (
    <Panel title={t("runs.title")}>
      <WideTable minWidth={720}>
        <Table verticalSpacing={6} aria-label={t("runs.title")}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t("runs.run")}</Table.Th>
              <Table.Th>{t("runs.state")}</Table.Th>
              <Table.Th>{t("runs.fireTime")}</Table.Th>
              <Table.Th ta="right">{t("runs.duration")}</Table.Th>
              <Table.Th ta="right">{t("node.attempt")}</Table.Th>
              <Table.Th>{t("node.instance")}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {items.map((one) => (
              <Table.Tr key={one.runId}>
                <Table.Td>
                  <Go to="/workflows/$workflow/runs/$run" params={{ workflow, run: one.runId }} search={{ node } as never} size="sm" className="numbers">
                    {one.runId}
                  </Go>
                </Table.Td>
                <Table.Td>
                  <StateChip state={one.state} /> {one.map && progressOf(one.map)} {one.errorCode}
                </Table.Td>
                <Table.Td>
                  <When at={one.fireTime} />
                </Table.Td>
                <Table.Td ta="right">
                  <Duration ms={one.durationMs} />
                </Table.Td>
                <Table.Td ta="right" className="numbers">
                  {one.attempt}
                </Table.Td>
                <Table.Td>
                  {one.instanceId && (
                    <Go to="/instances/$instance" params={{ instance: one.instanceId }} size="sm" className="numbers">
                      {one.instanceId}
                    </Go>
                  )}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </WideTable>
    </Panel>
  );
}
