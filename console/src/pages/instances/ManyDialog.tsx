import { Button, Group, Modal, Stack, Switch, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Act, CopyAs, ErrorView, ProgressBar, useWork } from "@/parts";
import { liveIn } from "./filters";
import { countOf, type Many, sweep, type Verb, wishesOf } from "./sweeping";

/** Counts first, asks, and then does it in portions; it can be stopped between two of them. */
export function ManyDialog({ many, onClose }: { many: Many | null; onClose: () => void }) {
  const { t } = useTranslation(["instances", "common"]);
  return (
    <Modal opened={many !== null} onClose={onClose} title={many && t(`${many.verb}Many.title`)} size="lg" closeOnClickOutside={false}>
      {many && <Asking many={many} onClose={onClose} />}
    </Modal>
  );
}

function Asking({ many, onClose }: { many: Many; onClose: () => void }) {
  const { t, i18n } = useTranslation(["instances", "common"]);
  const { verb } = many;
  const queries = useQueryClient();
  const work = useWork(() => {
    void queries.invalidateQueries({ queryKey: ["instances"] });
    void queries.invalidateQueries({ queryKey: ["dead-letters"] });
  });
  const [withRunning, setWithRunning] = useState(isOnlyRunning(many));
  const counted = useQuery({
    queryKey: ["sweeps", many, withRunning],
    queryFn: ({ signal }) => countOf(many, withRunning, signal),
    enabled: work.phase === "idle",
    gcTime: 0,
  });
  const total = counted.data?.matched;
  const number = new Intl.NumberFormat(i18n.language).format(total ?? 0);
  const isMore = counted.data?.more === true;
  if (work.phase !== "idle") {
    return <Progress verb={verb} work={work} total={total ?? 0} isMore={isMore} onClose={onClose} />;
  }
  const [wish] = wishesOf(many, withRunning);
  return (
    <Stack gap="md">
      <Text size="sm" aria-live="polite">
        {total === undefined ? t(`${verb}Many.counting`) : t(isMore ? `${verb}Many.atLeast` : `${verb}Many.count`, { number })}
        {"ids" in many && total !== undefined && total < many.ids.length && ` ${t(`${verb}Many.others`)}`}
      </Text>
      {verb === "cancel" && "filters" in many && liveIn(many.filters).includes("RUNNING") && !isOnlyRunning(many) && (
        <Switch
          checked={withRunning}
          onChange={(event) => setWithRunning(event.currentTarget.checked)}
          label={t("cancelMany.withRunning")}
          description={t("cancelMany.withRunningHint")}
        />
      )}
      <Text size="sm" c="dimmed">
        {t(`${verb}Many.stays`)}
      </Text>
      <ErrorView error={counted.error} />
      <Group justify="space-between">
        <div>{wish && <CopyAs recipe={{ method: "POST", path: `/api/v1/instances/${verb}`, body: wish }} />}</div>
        <Group gap="xs">
          <Button variant="default" onClick={onClose}>
            {t(`${verb}Many.keep`)}
          </Button>
          <Act
            {...(verb === "cancel" && { color: "red" })}
            why={total === undefined ? t(`${verb}Many.counting`) : total === 0 ? t(`${verb}Many.nothing`) : null}
            onClick={() => work.start(sweep(many, withRunning))}
          >
            {t(`${verb}Many.do`)}
          </Act>
        </Group>
      </Group>
    </Stack>
  );
}

function isOnlyRunning(many: Many): boolean {
  return "filters" in many && liveIn(many.filters).join() === "RUNNING";
}

interface ProgressProps {
  verb: Verb;
  work: ReturnType<typeof useWork>;
  total: number;
  isMore: boolean;
  onClose: () => void;
}

function Progress({ verb, work, total, isMore, onClose }: ProgressProps) {
  const { t, i18n } = useTranslation(["instances", "common"]);
  const { done, left } = work.tally;
  const isOver = work.phase === "done";
  const number = (value: number): string => new Intl.NumberFormat(i18n.language).format(value);
  return (
    <Stack gap="md">
      <ProgressBar
        label={t(`${verb}Many.title`)}
        done={done}
        total={isOver ? done + left : Math.max(total, done + (isMore ? 1 : 0))}
        tone={work.error ? "failed" : isOver ? "done" : "running"}
      />
      <Text size="sm" aria-live="polite">
        {isOver ? t(`${verb}Many.done`, { number: number(done) }) : t(`${verb}Many.working`)}
        {left > 0 && ` ${t(`${verb}Many.left`, { number: number(left) })}`}
      </Text>
      <ErrorView error={work.error} />
      <Group justify="flex-end">
        {isOver ? (
          <Button onClick={onClose}>{t(`${verb}Many.close`)}</Button>
        ) : (
          <Button variant="default" loading={work.phase === "stopping"} onClick={work.stop}>
            {t(`${verb}Many.stop`)}
          </Button>
        )}
      </Group>
    </Stack>
  );
}
