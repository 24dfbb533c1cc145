import { Button, Code, Group, Stack, Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { getSteps, type InstanceOut, type StepOut } from "@/api";
import { useNow } from "@/app/clock";
import { Act, Duration, ErrorView, Go, Panel, StateChip, When } from "@/parts";
import { type Lane, lanesOf } from "./lanes";
import { SignalDialog } from "./SignalDialog";
import classes from "./Steps.module.css";

const PAGE = 100;

/** The records of a durable function, in the order of their beginnings. */
export function useSteps(instance: string, enabled = true) {
  return useInfiniteQuery({
    enabled,
    queryKey: ["instances", instance, "steps"],
    queryFn: ({ pageParam, signal }) => getSteps(instance, { limit: PAGE, ...(pageParam && { cursor: pageParam }) }, { signal }),
    initialPageParam: "",
    getNextPageParam: (last) => last.nextCursor,
  });
}

/** What a durable function has done and waits for: each record with its time, on one scale. */
export function Steps({ instance }: { instance: InstanceOut }) {
  const { t } = useTranslation(["instances", "common"]);
  const clock = useNow();
  const now = instance.finishedAt ? new Date(instance.finishedAt).getTime() : clock;
  const steps = useSteps(instance.id);
  const [signalled, setSignalled] = useState<string | null>(null);
  const pages = steps.data?.pages ?? [];
  const signals = pages[0]?.signals ?? [];
  const lanes = lanesOf(pages.flatMap((page) => page.items), now);
  if (!steps.error && lanes.length === 0 && signals.length === 0) return null;
  return (
    <Panel title={t("steps.title")}>
      <ErrorView error={steps.error} />
      <Text size="xs" c="dimmed" mb="sm">
        {t("steps.note")}
      </Text>
      <ol className={classes.steps} aria-label={t("steps.title")}>
        {lanes.map((lane) => (
          <Row
            key={`${lane.step.kind} ${lane.step.name} ${lane.step.n}`}
            lane={lane}
            hasEnded={instance.finishedAt !== null}
            onSignal={() => setSignalled(lane.step.name)}
          />
        ))}
      </ol>
      {steps.hasNextPage && (
        <Button variant="default" size="xs" mt="sm" loading={steps.isFetchingNextPage} onClick={() => void steps.fetchNextPage()}>
          {t("steps.more")}
        </Button>
      )}
      {signals.length > 0 && (
        <Stack gap={4} mt="md">
          <Text size="sm" fw={600}>
            {t("steps.signals")}
          </Text>
          {signals.map((signal) => (
            <Group key={signal.id} gap="sm">
              <Code>{signal.name}</Code>
              <Text size="sm" c="dimmed" component="div">
                <When at={signal.sentAt} precision="millis" />
              </Text>
            </Group>
          ))}
        </Stack>
      )}
      <SignalDialog id={instance.id} waits={signalled === null ? [] : [signalled]} opened={signalled !== null} onClose={() => setSignalled(null)} />
    </Panel>
  );
}

function Row({ lane, hasEnded, onSignal }: { lane: Lane; hasEnded: boolean; onSignal: () => void }) {
  const { t } = useTranslation(["instances", "common"]);
  const { step } = lane;
  return (
    <li className={classes.step}>
      <Group gap="xs" className={classes.name}>
        <Text span size="xs" c="dimmed">
          {t(`steps.kind.${step.kind}`)}
        </Text>
        {step.kind !== "REWIND" && (
          <Text span size="sm" fw={600}>
            <bdi>{step.name}</bdi>
            {step.n > 1 && ` #${step.n}`}
          </Text>
        )}
        <Text span size="xs" c={step.state === "FAILED" ? "var(--state-DEAD-text)" : "dimmed"}>
          {t(`steps.state.${step.state === "OPEN" && hasEnded ? "UNFINISHED" : step.state}`)}
        </Text>
        {step.tries > 1 && (
          <Text span size="xs" c="dimmed">
            {t("steps.tries", { count: step.tries })}
          </Text>
        )}
      </Group>
      <div className={classes.track}>
        <div
          className={classes.bar}
          data-pause={step.kind === "SLEEP" || step.kind === "WAIT" || undefined}
          data-state={step.state}
          style={{ left: `min(${lane.left}%, 100% - 3px)`, width: `${lane.width}%` }}
        />
      </div>
      <Duration ms={lane.length} />
      <Group gap="sm" className={classes.detail}>
        <Text size="xs" c="dimmed" component="div">
          <When at={step.startedAt} precision="millis" />
        </Text>
        <Outcome step={step} />
        {step.kind === "WAIT" && step.state === "OPEN" && !hasEnded && (
          <Act variant="default" size="compact-xs" onClick={onSignal} aria-label={t("signal.openNamed", { name: step.name })}>
            {t("signal.open")}
          </Act>
        )}
      </Group>
    </li>
  );
}

function Outcome({ step }: { step: StepOut }) {
  const { t } = useTranslation(["instances", "common"]);
  return (
    <>
      {step.childId && (
        <Group gap={6}>
          <Go to="/instances/$instance" params={{ instance: step.childId }} size="xs">
            {step.childJob ? t("steps.child", { id: step.childId, job: step.childJob }) : `#${step.childId}`}
          </Go>
          {step.childState && <StateChip state={step.childState} />}
        </Group>
      )}
      {step.state === "OPEN" && step.until && (
        <Text size="xs" c="dimmed" component="div">
          {t("steps.until")} <When at={step.until} />
        </Text>
      )}
      {step.errorType && (
        <Text size="xs" lineClamp={2} title={step.errorMsg ?? ""}>
          <Code>{step.errorType}</Code> {step.errorMsg}
        </Text>
      )}
      {step.result !== null && (
        <Text size="xs" lineClamp={2} className={classes.result}>
          <Code>{JSON.stringify(step.result)}</Code>
        </Text>
      )}
      {step.result === null && step.resultSize !== null && step.resultSize > 4 && (
        <Text size="xs" c="dimmed">
          {t("steps.large", { size: step.resultSize })}
        </Text>
      )}
    </>
  );
}
