import { Group, Stack, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { RunNodeOut, RunOut } from "@/api";
import { Command, Duration, Facts, FaultMeaning, Go, JsonView, Panel, StateChip, When } from "@/parts";
import { Rerun } from "./Rerun";

interface NodePanelProps {
  run: RunOut;
  node: RunNodeOut;
  nodes: readonly RunNodeOut[];
}

/** One node of a run: how it went, its instance, its error, and what can be done about it. */
export function NodePanel({ run, node, nodes }: NodePanelProps) {
  const { t } = useTranslation(["workflows", "common"]);
  return (
    <Panel title={<span style={{ overflowWrap: "anywhere" }}>{node.name}</span>} aside={<StateChip state={node.state} />}>
      <Stack gap="md">
        {node.rootCauses.length > 0 && (
          <Text size="sm" c="var(--horai-bad)">
            {t("node.heldBy", { names: node.rootCauses.join(", ") })}
          </Text>
        )}
        <Facts
          items={[
            [t("node.job"), <Go key="job" to="/jobs/$job" params={{ job: node.job }}>{node.job}</Go>],
            [t("node.instance"), <Go key="id" to="/instances/$instance" params={{ instance: node.instanceId }} className="numbers">{node.instanceId}</Go>],
            [t("node.after"), node.after.join(", ") || null],
            [t("node.started"), node.startedAt && <When key="started" at={node.startedAt} />],
            [t("node.finished"), node.finishedAt && <When key="finished" at={node.finishedAt} />],
            [t("node.duration"), node.durationMs !== null && <Duration key="duration" ms={node.durationMs} />],
            [t("node.attempt"), node.attempt],
            [t("node.generation"), node.generation > 0 && node.generation],
            [t("node.reason"), node.reason && t(`common:reason.${node.reason}`)],
          ]}
        />
        <FaultMeaning code={node.errorCode} />
        {(node.errorCode ?? node.errorMsg) && <Command text={[node.errorCode, node.errorMsg].filter(Boolean).join("\n")} />}
        {node.result !== null && node.result !== undefined && (
          <div>
            <Text size="sm" c="dimmed" mb={4}>
              {t("node.result")}
            </Text>
            <JsonView value={node.result} />
          </div>
        )}
        {node.state !== "DEAD" && (
          <Group gap="xs">
            <Rerun run={run} node={node} nodes={nodes} />
          </Group>
        )}
      </Stack>
    </Panel>
  );
}
