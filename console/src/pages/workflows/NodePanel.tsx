import { Group, Stack, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { RunNodeOut, RunOut } from "@/api";
import { Duration, Facts, FaultMeaning, Go, JsonView, Panel, StateChip, Trace, When } from "@/parts";
import { wordsOf } from "@/i18n";
import { FailedItems } from "./FailedItems";
import { useProgress } from "./progress";
import { Rerun } from "./Rerun";

interface NodePanelProps {
  run: RunOut;
  node: RunNodeOut;
  nodes: readonly RunNodeOut[];
}

/** One node of a run: how it went, its instance, its error, and what can be done about it. */
export function NodePanel({ run, node, nodes }: NodePanelProps) {
  const { t } = useTranslation(["workflows", "common"]);
  const progressOf = useProgress();
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
            [t("node.job"), !node.childRun && <Go key="job" to="/jobs/$job" params={{ job: node.job }}>{node.job}</Go>],
            [t("node.instance"), node.instanceId && <Go key="id" to="/instances/$instance" params={{ instance: node.instanceId }} className="numbers">{node.instanceId}</Go>],
            [
              t("node.workflow"),
              node.childRun && <Go key="workflow" to="/workflows/$workflow" params={{ workflow: node.childRun.workflow }}>{node.childRun.workflow}</Go>,
            ],
            [
              t("node.childRun"),
              node.childRun &&
                (node.childRun.runId === null ? (
                  t("node.childWaits")
                ) : (
                  <Go key="child" to="/workflows/$workflow/runs/$run" params={{ workflow: node.childRun.workflow, run: node.childRun.runId }} className="numbers">
                    {node.childRun.runId}
                  </Go>
                )),
            ],
            [t("node.childAttempt"), node.childRun && node.childRun.attempt > 1 && node.childRun.attempt],
            [t("sensor.label"), node.sensor && t("sensor.polls", { count: node.sensor.polls })],
            [t("sensor.next"), node.sensor?.nextPollAt && <When key="poll" at={node.sensor.nextPollAt} />],
            [t("sensor.deadline"), node.sensor?.deadlineAt && <When key="deadline" at={node.sensor.deadlineAt} />],
            [t("map.items"), node.map && (progressOf(node.map) || t("map.notCounted"))],
            [t("map.running"), node.map && node.map.running > 0 && node.map.running],
            [t("map.allowed"), node.map && node.map.allowFailures !== 0 && node.map.allowFailures],
            [t("node.after"), node.after.join(", ") || null],
            [t("node.triggerRule"), node.triggerRule !== "allSuccess" && t(`rule.${node.triggerRule}`)],
            [t("node.skipped"), node.skipReason !== null && wordsOf(node.skipReason, node.skipReasonSaid)],
            [t("node.chosen"), node.chosen && (node.chosen.join(", ") || t("node.chosenNone"))],
            [t("node.started"), node.startedAt && <When key="started" at={node.startedAt} />],
            [t("node.finished"), node.finishedAt && <When key="finished" at={node.finishedAt} />],
            [t("node.duration"), node.durationMs !== null && <Duration key="duration" ms={node.durationMs} />],
            [t("node.attempt"), node.attempt],
            [t("node.generation"), node.generation > 0 && node.generation],
            [t("node.reason"), node.state !== "SKIPPED" && node.reason && t(`common:reason.${node.reason}`)],
          ]}
        />
        <FaultMeaning code={node.errorCode} />
        {(node.errorCode ?? node.errorMsg) && <Trace text={[node.errorCode, node.errorMsg].filter(Boolean).join("\n")} />}
        {node.result !== null && node.result !== undefined && (
          <div>
            <Text size="sm" c="dimmed" mb={4}>
              {t("node.result")}
            </Text>
            <JsonView value={node.result} />
          </div>
        )}
        {node.map && node.map.failed > 0 && <FailedItems run={run} node={node} failed={node.map.failed} />}
        <Group gap="md">
          {node.state !== "DEAD" && <Rerun run={run} node={node} nodes={nodes} />}
          <Go to="/workflows/$workflow/nodes/$node" params={{ workflow: run.workflow, node: node.name }} size="sm">
            {t("trend.act")}
          </Go>
        </Group>
      </Stack>
    </Panel>
  );
}
