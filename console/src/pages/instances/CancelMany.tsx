import { Button, Group, Modal, Stack, Switch, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { cancelInstances } from "@/api";
import { Act, CopyAs, ErrorView, ProgressBar, useWork } from "@/parts";
import { cancelChosen, cancelMatching } from "./cancelling";
import { type InstanceFilters, liveIn, sweepOf } from "./filters";

/** Those that were ticked, or all that match a filter. */
export type Many = { ids: readonly string[] } | { filters: InstanceFilters };

/** Counts first, asks, and then cancels in portions; it can be stopped between two of them. */
export function CancelMany({ many, onClose }: { many: Many | null; onClose: () => void }) {
  const { t } = useTranslation(["instances", "common"]);
  return (
    <Modal opened={many !== null} onClose={onClose} title={t("cancelMany.title")} size="lg" closeOnClickOutside={false}>
      {many && <Cancelling many={many} onClose={onClose} />}
    </Modal>
  );
}

function Cancelling({ many, onClose }: { many: Many; onClose: () => void }) {
  const { t, i18n } = useTranslation(["instances", "common"]);
  const queries = useQueryClient();
  const work = useWork(() => void queries.invalidateQueries({ queryKey: ["instances"] }));
  const [withRunning, setWithRunning] = useState(isOnlyRunning(many));
  const wish = "filters" in many ? sweepOf(many.filters, withRunning) : null;
  const counted = useQuery({
    queryKey: ["sweeps", wish],
    queryFn: ({ signal }) => cancelInstances({ ...wish, dryRun: true }, { signal }),
    enabled: wish !== null && work.phase === "idle",
    gcTime: 0,
  });
  const total = "ids" in many ? many.ids.length : counted.data?.matched;
  const number = new Intl.NumberFormat(i18n.language).format(total ?? 0);
  const isMore = counted.data?.more === true;
  if (work.phase !== "idle") {
    return <Progress work={work} total={total ?? 0} isMore={isMore} onClose={onClose} />;
  }
  return (
    <Stack gap="md">
      <Text size="sm" aria-live="polite">
        {total === undefined ? t("cancelMany.counting") : t(isMore ? "cancelMany.atLeast" : "cancelMany.count", { number })}
      </Text>
      {"filters" in many && liveIn(many.filters).includes("RUNNING") && !isOnlyRunning(many) && (
        <Switch
          checked={withRunning}
          onChange={(event) => setWithRunning(event.currentTarget.checked)}
          label={t("cancelMany.withRunning")}
          description={t("cancelMany.withRunningHint")}
        />
      )}
      <Text size="sm" c="dimmed">
        {t("cancelMany.stays")}
      </Text>
      <ErrorView error={counted.error} />
      <Group justify="space-between">
        <div>{wish && <CopyAs recipe={{ method: "POST", path: "/api/v1/instances/cancel", body: wish }} />}</div>
        <Group gap="xs">
          <Button variant="default" onClick={onClose}>
            {t("cancelMany.keep")}
          </Button>
          <Act
            color="red"
            why={total === undefined ? t("cancelMany.counting") : total === 0 ? t("cancelMany.nothing") : null}
            onClick={() => work.start("ids" in many ? cancelChosen(many.ids) : cancelMatching(wish ?? {}))}
          >
            {t("cancelMany.do")}
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
  work: ReturnType<typeof useWork>;
  total: number;
  isMore: boolean;
  onClose: () => void;
}

function Progress({ work, total, isMore, onClose }: ProgressProps) {
  const { t, i18n } = useTranslation(["instances", "common"]);
  const { done, left } = work.tally;
  const isOver = work.phase === "done";
  const number = (value: number): string => new Intl.NumberFormat(i18n.language).format(value);
  return (
    <Stack gap="md">
      <ProgressBar
        label={t("cancelMany.title")}
        done={done}
        total={isOver ? done + left : Math.max(total, done + (isMore ? 1 : 0))}
        tone={work.error ? "failed" : isOver ? "done" : "running"}
      />
      <Text size="sm" aria-live="polite">
        {isOver ? t("cancelMany.done", { number: number(done) }) : t("cancelMany.working")}
        {left > 0 && ` ${t("cancelMany.left", { number: number(left) })}`}
      </Text>
      <ErrorView error={work.error} />
      <Group justify="flex-end">
        {isOver ? (
          <Button onClick={onClose}>{t("cancelMany.close")}</Button>
        ) : (
          <Button variant="default" loading={work.phase === "stopping"} onClick={work.stop}>
            {t("cancelMany.stop")}
          </Button>
        )}
      </Group>
    </Stack>
  );
}
