import { Group, SegmentedControl, Skeleton, Text, Timeline } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { getHistory, type HistoryEntry, type InstanceOut } from "@/api";
import { ErrorView, Go, Panel, When } from "@/parts";
import { tellEvent } from "./events";

const MOST = 200;

/** What has happened, to this instance or to its key over all of its instances. */
export function Chain({ instance }: { instance: InstanceOut }) {
  const { t } = useTranslation(["instances", "common"]);
  const [whole, setWhole] = useState("instance");
  const { job, key } = instance;
  const chain = useQuery({
    queryKey: ["instances", instance.id, "chain"],
    queryFn: ({ signal }) => getHistory(job, key ?? "", { limit: MOST }, { signal }),
    enabled: whole === "key" && key !== null,
  });
  const made = { at: instance.createdAt, kind: "INSTANCE_INSERTED", seq: 0, data: null };
  const own = [made, ...(instance.timeline ?? [])].map((event) => ({ ...event, instanceId: instance.id }));
  const shown: readonly HistoryEntry[] | undefined = whole === "key" ? chain.data?.items : own;
  const choice = key !== null && (
    <SegmentedControl
      size="xs"
      value={whole}
      onChange={setWhole}
      data={[
        { value: "instance", label: t("chain.instance") },
        { value: "key", label: t("chain.key") },
      ]}
      aria-label={t("chain.title")}
    />
  );
  return (
    <Panel title={t("chain.title")} aside={choice}>
      {whole === "key" && <ErrorView error={chain.error} />}
      {!shown && !chain.error && <Skeleton height={96} />}
      {shown?.length === 0 && (
        <Text size="sm" c="dimmed">
          {t("chain.none")}
        </Text>
      )}
      <Timeline bulletSize={14} lineWidth={2} active={shown?.length ?? 0}>
        {shown?.map((entry) => (
          <Timeline.Item key={`${entry.instanceId} ${entry.kind} ${entry.at}`} title={<Entry entry={entry} here={instance.id} />}>
            <Text size="xs" c="dimmed" component="div">
              <When at={entry.at} precision="millis" />
            </Text>
          </Timeline.Item>
        ))}
      </Timeline>
      {whole === "key" && chain.data?.nextCursor && (
        <Text size="xs" c="dimmed" mt="sm">
          {t("chain.cut", { most: MOST })}
        </Text>
      )}
    </Panel>
  );
}

function Entry({ entry, here }: { entry: HistoryEntry; here: string }) {
  const { t } = useTranslation(["instances", "common"]);
  const told = tellEvent(entry, t);
  return (
    <Group gap={8} component="span" display="inline-flex">
      <Text span size="sm" fw={500}>
        {told.title}
      </Text>
      {told.at && (
        <Text span size="sm" c="dimmed">
          <When at={told.at} />
        </Text>
      )}
      {told.text && (
        <Text span size="sm" c="dimmed" lineClamp={2}>
          {told.text}
        </Text>
      )}
      {entry.instanceId !== here && (
        <Go to="/instances/$instance" params={{ instance: entry.instanceId }} size="xs">
          {`#${entry.instanceId}`}
        </Go>
      )}
    </Group>
  );
}
