import { Code, SimpleGrid, Stack, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { InstanceOut } from "@/api";
import { Command, Facts, FaultMeaning, Go, JsonView, Panel, Trace, When } from "@/parts";

/** Its error, its payload and result, and everything by which it can be found elsewhere. */
export function Details({ instance }: { instance: InstanceOut }) {
  const { t } = useTranslation(["instances", "common"]);
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="lg">
      <Stack gap="lg">
        {instance.errorMsg && (
          <Panel title={t("detail.error")} aside={<Code>{instance.errorCode}</Code>}>
            <FaultMeaning code={instance.errorCode} />
            <Trace text={instance.errorMsg} />
          </Panel>
        )}
        <Panel title={t("detail.payload")}>
          {instance.payload === null ? <None text={t("detail.noPayload")} /> : <JsonView value={instance.payload} />}
        </Panel>
        {(instance.result !== null || instance.resultTruncated) && (
          <Panel title={t("detail.result")}>
            {instance.resultTruncated ? <None text={t("detail.resultTruncated")} /> : <JsonView value={instance.result} />}
          </Panel>
        )}
      </Stack>
      <Panel title={t("detail.keys")} fz="sm">
        <Keys instance={instance} />
      </Panel>
    </SimpleGrid>
  );
}

function None({ text }: { text: string }) {
  return (
    <Text size="sm" c="dimmed">
      {text}
    </Text>
  );
}

function Keys({ instance }: { instance: InstanceOut }) {
  const { t } = useTranslation(["instances", "common"]);
  const key = instance.key && (
    <Go to="/instances" search={{ job: instance.job, key: instance.key }} inherit>
      <bdi>{instance.key}</bdi>
    </Go>
  );
  return (
    <Facts
      items={[
        [t("detail.id"), <span key="id" className="numbers">{instance.id}</span>],
        [t("column.key"), key],
        [t("detail.idempotencyKey"), <Code key="idem">{instance.idempotencyKey}</Code>],
        [t("detail.concurrencyKey"), instance.concurrencyKey && <bdi key="concurrency">{instance.concurrencyKey}</bdi>],
        [t("detail.trace"), instance.traceId && <Command key="trace" text={instance.traceId} />],
        [
          t("filter.queue"),
          <Go key="queue" to="/instances" search={{ queue: instance.queue }} inherit>
            {instance.queue}
          </Go>,
        ],
        [t("detail.priority"), t(`common:priority.${instance.priority}`)],
        [t("detail.node"), instance.node],
        [t("detail.fence"), <span key="fence" className="numbers">{instance.fence}</span>],
        [t("detail.lost"), instance.lostCount ? <span key="lost" className="numbers">{instance.lostCount}</span> : null],
        [t("detail.version"), instance.version],
        [t("column.fire"), <When key="fire" at={instance.fireTime} as="both" precision="millis" />],
        [t("detail.executeTime"), <When key="execute" at={instance.executeTime} precision="millis" />],
        [t("detail.due"), instance.due && <When key="due" at={instance.due} precision="millis" />],
        [t("detail.expiresAt"), instance.expiresAt && <When key="expires" at={instance.expiresAt} precision="millis" />],
      ]}
    />
  );
}
