import { Group, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { InstanceOut, NeighbourOut } from "@/api";
import { Facts, Go, Panel, StateChip } from "@/parts";

/** Where it comes from and what came of it: its workflow, what it replaced, replays. */
export function Relatives({ instance }: { instance: InstanceOut }) {
  const { t } = useTranslation(["instances", "common"]);
  const place = instance.workflow;
  const ids = (list: readonly string[] | null | undefined) => (list && list.length > 0 ? <Ids ids={list} /> : null);
  const facts = [
    [
      t("relatives.workflow"),
      place && (
        <Go to="/workflows/$workflow/runs/$run" params={{ workflow: place.workflow, run: place.runId }}>
          {t("relatives.run", { workflow: place.workflow, run: place.runId, node: place.node })}
        </Go>
      ),
    ],
    [t("relatives.parents"), place && place.parents.length > 0 && <Neighbours of={place.parents} />],
    [t("relatives.children"), place && place.children.length > 0 && <Neighbours of={place.children} />],
    [t("relatives.supersedes"), instance.supersedes && ids([instance.supersedes])],
    [t("relatives.supersededBy"), ids(instance.supersededBy)],
    [t("relatives.replayOf"), instance.replayOf && ids([instance.replayOf])],
    [t("relatives.replays"), ids(instance.replays)],
  ] as const;
  if (facts.every(([, value]) => !value)) return null;
  return (
    <Panel title={t("relatives.title")}>
      <Facts items={facts} />
    </Panel>
  );
}

function Ids({ ids }: { ids: readonly string[] }) {
  return (
    <Group gap="xs">
      {ids.map((id) => (
        <Go key={id} to="/instances/$instance" params={{ instance: id }}>
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
          <Go to="/instances/$instance" params={{ instance: one.instanceId }}>
            <bdi>{one.node}</bdi>
          </Go>
          {one.state ? <StateChip state={one.state} /> : <Text c="dimmed">…</Text>}
        </Group>
      ))}
    </Group>
  );
}
