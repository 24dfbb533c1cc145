import { Alert, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Fragment } from "react";
import { useTranslation } from "react-i18next";
import { getCloggedQueues } from "@/api";
import { Go, Icon, When } from "@/parts";

const EVERY_MS = 30_000;

/** Queues whose slots stuck runs hold, each with these runs: ending one of them makes room. */
export function Clogged() {
  const { t } = useTranslation("queues");
  const found = useQuery({
    queryKey: ["queues", "clogged"],
    queryFn: ({ signal }) => getCloggedQueues({ limit: 100 }, { signal }),
    refetchInterval: EVERY_MS,
  });
  const clogged = found.data?.items ?? [];
  if (clogged.length === 0) return null;
  return (
    <Alert color="red" variant="light" mb="md" icon={<Icon name="warning" />} title={t("clogged.title", { count: clogged.length })} styles={{ root: { background: "var(--state-DEAD-tint)" } }}>
      {clogged.map((queue) => (
        <Text key={queue.name} size="sm" style={{ overflowWrap: "anywhere" }}>
          <b>{queue.name}</b> {t("clogged.held", { count: queue.slots, waiting: queue.waiting })} <When at={queue.since} as="relative" />
          {": "}
          {queue.holders.map((run, place) => (
            <Fragment key={run.id}>
              {place > 0 && ", "}
              <Go to="/instances/$instance" params={{ instance: run.id }} size="sm">
                {`${run.job} ${run.id}`}
              </Go>
            </Fragment>
          ))}
        </Text>
      ))}
    </Alert>
  );
}
