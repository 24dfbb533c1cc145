import { Alert, Anchor, Group, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { RunNodeOut, RunOut } from "@/api";
import { Fault, Icon } from "@/parts";
import { Replay } from "./Replay";
import { Rerun } from "./Rerun";

interface ObstacleProps {
  run: RunOut;
  nodes: readonly RunNodeOut[];
  onChoose: (name: string) => void;
}

/** What keeps a run from going on, one line for each root cause, with the two ways out. */
export function Obstacle({ run, nodes, onChoose }: ObstacleProps) {
  const { t } = useTranslation("workflows");
  const blocks = new Map(run.rootCauses?.map((cause) => [cause.node, cause.blocks.length]));
  const dead = nodes.filter((node) => blocks.has(node.name));
  if (dead.length === 0) return null;
  return (
    <Alert color="red" variant="light" icon={<Icon name="warning" />} title={t("obstacle.title", { count: dead.length })} styles={{ root: { background: "var(--state-DEAD-tint)" } }}>
      {dead.map((node) => (
        <Group key={node.name} justify="space-between" gap="xs" mt={4}>
          <Text size="sm" lineClamp={2} flex="1 1 240px" style={{ overflowWrap: "anywhere" }}>
            <Anchor component="button" type="button" size="sm" fw={600} onClick={() => onChoose(node.name)}>
              {node.name}
            </Anchor>{" "}
            {t("obstacle.behind", { count: blocks.get(node.name) ?? 0 })}{" "}
            {node.errorCode && <Fault code={node.errorCode} message={node.errorMsg} />}
          </Text>
          <Group gap="xs" wrap="nowrap">
            {node.instanceId && <Replay node={node} />}
            <Rerun run={run} node={node} nodes={nodes} />
          </Group>
        </Group>
      ))}
    </Alert>
  );
}
