import { Group, Progress, Skeleton, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { getInstance, type InstanceOut } from "@/api";
import { JobZone } from "@/app/zones";
import { Crumb, ErrorView, Go, Page, Panel, StateChip } from "@/parts";
import { Actions } from "./Actions";
import { Attempts } from "./Attempts";
import { Chain } from "./Chain";
import { Details } from "./Details";
import { Relatives } from "./Relatives";
import { Steps, useSteps } from "./Steps";
import { Waterfall } from "./Waterfall";
import { Why } from "./Why";

const WAITING = new Set(["INIT", "FAIL", "BLOCKED"]);

export default function InstancePage() {
  const { t } = useTranslation(["instances", "common"]);
  const { instance: id } = useParams({ from: "/instances/$instance" });
  const found = useQuery({
    queryKey: ["instances", id],
    queryFn: ({ signal }) => getInstance(id, { signal }),
  });
  const instance = found.data;
  const back = (
    <Crumb>
      <Go to="/instances">{t("common:page.instances")}</Go>
    </Crumb>
  );
  return (
    <Page
      title={instance ? (instance.key ?? t("detail.title", { id })) : t("detail.title", { id })}
      above={back}
      lead={instance && <Lead instance={instance} />}
      actions={instance && <Actions key={instance.id} instance={instance} />}
    >
      <ErrorView error={found.error} onRetry={() => void found.refetch()} />
      {found.isPending && (
        <Stack gap="lg" aria-hidden>
          <Skeleton height={160} />
          <Skeleton height={240} />
        </Stack>
      )}
      {instance && (
        <JobZone value={instance.timezone}>
          <Body instance={instance} />
        </JobZone>
      )}
    </Page>
  );
}

function Lead({ instance }: { instance: InstanceOut }) {
  const { t } = useTranslation(["instances", "common"]);
  return (
    <Group gap="sm" component="span" display="inline-flex">
      <StateChip state={instance.state} />
      <Go to="/jobs/$job" params={{ job: instance.job }} inherit>
        {instance.job}
      </Go>
      <Text span c="dimmed">
        {instance.reason && t(`common:reason.${instance.reason}`)}
      </Text>
    </Group>
  );
}

function Body({ instance }: { instance: InstanceOut }) {
  const { t } = useTranslation(["instances", "common"]);
  const attempts = instance.attempts ?? [];
  const begunAt = useSteps(instance.id).data?.pages[0]?.items[0]?.startedAt;
  return (
    <Stack gap="lg">
      {WAITING.has(instance.state) && <Why instance={instance.id} />}
      <Panel title={t("timeline")}>
        {instance.state === "RUNNING" && typeof instance.progress === "number" && (
          <Told progress={instance.progress} said={attempts.at(-1)?.log.at(-1)?.message} />
        )}
        <Waterfall instance={instance} begunAt={begunAt} />
      </Panel>
      <Steps instance={instance} />
      {attempts.length > 0 && (
        <Panel title={t("attempts.title")}>
          <Attempts attempts={attempts} name={instance.id} />
        </Panel>
      )}
      <Details instance={instance} />
      <Relatives instance={instance} />
      <Chain instance={instance} />
    </Stack>
  );
}

/** How far its function says it has come, and its last line. */
function Told({ progress, said }: { progress: number; said: string | undefined }) {
  const { t } = useTranslation(["instances", "common"]);
  return (
    <Stack gap={4} mb="lg">
      <Group justify="space-between" wrap="nowrap">
        <Text size="sm" truncate>
          {said}
        </Text>
        <Text size="sm" className="numbers">{`${Math.round(progress * 100)} %`}</Text>
      </Group>
      <Progress value={progress * 100} color="var(--state-RUNNING-solid)" aria-label={t("progress")} />
    </Stack>
  );
}
