import { Button, Group, List, Modal, Stack, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { getForecastMinute, type HotSpot, patchJob } from "@/api";
import { Act, CopyAs, ErrorView, Go, ProgressBar, type Tally, useWork } from "@/parts";
import { amendment } from "../jobs/recipes";
import { spreadable } from "./spreading";

const SHOWN = 5;

/** Gives the suggested jitter to the jobs of a hot spot that have none, one after the other, and says how far it is. */
export function ApplyJitter({ spot, onClose }: { spot: HotSpot; onClose: () => void }) {
  const { t } = useTranslation(["forecast", "common"]);
  const queries = useQueryClient();
  const minute = useQuery({
    queryKey: ["forecast", "minute", spot.at],
    queryFn: ({ signal }) => getForecastMinute({ at: spot.at }, { signal }),
  });
  const work = useWork(() => void Promise.all([queries.invalidateQueries({ queryKey: ["jobs"] }), queries.invalidateQueries({ queryKey: ["forecast"] })]));
  const jitter = spot.suggestedJitter!;
  const names = minute.data ? spreadable(spot, minute.data) : [];
  const isDone = work.phase === "done";
  return (
    <Modal opened onClose={onClose} title={t("spread.title", { jitter })} size="lg">
      <Stack gap="md">
        <Text size="sm">{t("spread.explain", { jitter, count: names.length })}</Text>
        <ErrorView error={minute.error ?? work.error} />
        <List size="sm">
          {names.slice(0, SHOWN).map((name) => (
            <List.Item key={name}>
              <Go to="/jobs/$job" params={{ job: name }} size="sm">
                {name}
              </Go>
            </List.Item>
          ))}
        </List>
        {names.length > SHOWN && (
          <Text size="sm" c="dimmed">
            {t("moreJobs", { count: names.length - SHOWN })}
          </Text>
        )}
        {work.phase !== "idle" && <ProgressBar label={t("spread.open")} done={work.tally.done} total={names.length} tone={isDone && !work.error ? "done" : "running"} />}
        {isDone && !work.error && (
          <Text size="sm" role="status">
            {t("spread.done", { count: work.tally.done })}
          </Text>
        )}
        <Group justify="space-between">
          {names[0] ? <CopyAs recipe={amendment({ name: names[0] }, { jitter })} /> : <span />}
          <Group gap="xs">
            <Button variant="default" onClick={onClose}>
              {t(isDone ? "spread.close" : "common:dialog.cancel")}
            </Button>
            {!isDone && (
              <Act needs="admin" loading={work.phase !== "idle"} onClick={() => work.start(spreading(names, jitter))} why={names.length > 0 ? null : t("spread.nobody")}>
                {t("spread.apply", { count: names.length })}
              </Act>
            )}
          </Group>
        </Group>
      </Stack>
    </Modal>
  );
}

async function* spreading(names: readonly string[], jitter: string): AsyncGenerator<Tally> {
  for (const [index, name] of names.entries()) {
    await patchJob(name, { jitter });
    yield { done: index + 1, left: 0 };
  }
}
