import { Group, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { InstanceOut, NeighbourOut } from "@/api";
import { Facts, Go, Panel, StateChip } from "@/parts";

/** Where it comes from and what came of it: its workflow, what it replaced, replays. */
export function Relatives({ instance }: { instance: InstanceOut }) {
  const { t } = useTranslation(["instances", "common"]);
  const place = instance.workflow;
  const run = place && (
    <Go to="/workflows/$workflow/runs/$run" params={{ workflow: place.workflow, run: place.runId }} inherit>
      {t("relatives.run", { workflow: place.workflow, run: place.runId, node: place.node })}
    </Go>
  );
  const facts = [
    [t("relatives.workflow"), run],
    [t("relatives.parents"), neighbours(place?.parents)],
    [t("relatives.children"), neighbours(place?.children)],
    [t("relatives.calledBy"), links(instance.calledBy && [instance.calledBy])],
    [t("relatives.supersedes"), links(instance.supersedes && [instance.supersedes])],
    [t("relatives.supersededBy"), links(instance.supersededBy)],
    [t("relatives.replayOf"), links(instance.replayOf && [instance.replayOf])],
    [t("relatives.replays"), links(instance.replays)],
  ] as const;
  if (facts.every(([, value]) => !value)) return null;
  return (
    <Panel title={t("relatives.title")} fz="sm">
      <Facts items={facts} />
    </Panel>
  );
}

function links(list: readonly string[] | "" | null | undefined) {
  return list && list.length > 0 ? <Ids ids={list} /> : null;
}

function neighbours(list: readonly NeighbourOut[] | undefined) {
  return list && list.length > 0 ? <Neighbours of={list} /> : null;
}

function Ids({ ids }: { ids: readonly string[] }) {
  return (
    <Group gap="xs">
      {ids.map((id) => (
        <Go key={id} to="/instances/$instance" params={{ instance: id }} inherit>
          {`#${id}`}
        </Go>
      ))}
    </Group>
  );
}

function Neighbours({ of }: { of: readonly NeighbourOut[] }) {
  return (
    <Group gap="sm">
      {of.map((one) => (
        <Group key={one.instanceId} gap={6}>
          <Go to="/instances/$instance" params={{ instance: one.instanceId }} inherit>
            <bdi>{one.node}</bdi>
          </Go>
          {one.state ? <StateChip state={one.state} /> : <Text c="dimmed">…</Text>}
        </Group>
      ))}
    </Group>
  );
}
