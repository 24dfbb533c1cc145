import { Group, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type BackfillOut, cancelBackfill, pauseBackfill, resumeBackfill } from "@/api";
import { Act, ConfirmDialog, ErrorView, Icon, ProgressBar, When } from "@/parts";
import { cancellation } from "../recipes";
import classes from "./backfill.module.css";

const TONES = { RUNNING: "running", PAUSED: "paused", DONE: "done", CANCELLED: "paused" } as const;

/** One backfill: how far it has come, when it will be through, and how to hold or end it. */
export function BackfillCard({ backfill }: { backfill: BackfillOut }) {
  const { t } = useTranslation("jobs");
  const { progress, status } = backfill;
  const ended = progress.succeeded + progress.failed + progress.cancelled;
  // What history did not allow at the start may be passed over later: `total` was counted when it was asked for.
  const total = status === "DONE" ? Math.max(ended, 1) : Math.max(progress.total, ended);
  return (
    <section className={classes.card} aria-label={t("backfill.one", { id: backfill.id })} data-status={status}>
      <Group justify="space-between" mb="xs" wrap="nowrap">
        <Group gap="xs">
          <Text size="sm" fw={600}>
            {t(`backfill.status.${status}`)}
          </Text>
          <Text size="sm" c="dimmed">
            <When at={backfill.from} precision="minute" /> – <When at={backfill.to} precision="minute" />
          </Text>
        </Group>
        <Verbs backfill={backfill} />
      </Group>
      <ProgressBar
        label={t("backfill.one", { id: backfill.id })}
        done={status === "DONE" && ended === 0 ? 1 : ended}
        total={total}
        rate={status === "RUNNING" ? progress.ratePerSecond : null}
        tone={progress.failed > 0 && status === "DONE" ? "failed" : TONES[status]}
      />
      <Group gap="md" mt={8} className="numbers" fz="sm" c="dimmed">
        <span>{t("backfill.succeeded", { count: progress.succeeded })}</span>
        <Text span fz="sm" c={progress.failed > 0 ? "var(--horai-bad)" : undefined}>
          {t("backfill.failed", { count: progress.failed })}
        </Text>
        <span>{t("backfill.running", { count: progress.running })}</span>
        {progress.cancelled > 0 && <span>{t("backfill.cancelled", { count: progress.cancelled })}</span>}
        {backfill.finishedAt && (
          <span>
            {t("backfill.ended")} <When at={backfill.finishedAt} as="relative" />
          </span>
        )}
      </Group>
      {backfill.note && (
        <Text size="sm" mt={4} lineClamp={2} style={{ overflowWrap: "anywhere" }}>
          {backfill.note}
        </Text>
      )}
    </section>
  );
}

function Verbs({ backfill }: { backfill: BackfillOut }) {
  const { t } = useTranslation("jobs");
  const queries = useQueryClient();
  const [isAsking, ask] = useState(false);
  const again = () => queries.invalidateQueries({ queryKey: ["backfills"] });
  const isPaused = backfill.status === "PAUSED";
  const hold = useMutation({
    mutationFn: () => (isPaused ? resumeBackfill : pauseBackfill)(backfill.id, {}),
    onSettled: again,
  });
  if (backfill.status !== "RUNNING" && !isPaused) return null;
  return (
    <Group gap={4} wrap="nowrap">
      <Act
        size="compact-sm"
        variant="default"
        loading={hold.isPending}
        leftSection={<Icon name={isPaused ? "right" : "pause"} size={14} />}
        onClick={() => hold.mutate()}
      >
        {t(isPaused ? "act.resume" : "act.pause")}
      </Act>
      <Act size="compact-sm" variant="default" leftSection={<Icon name="close" size={14} />} onClick={() => ask(true)}>
        {t("backfill.cancel")}
      </Act>
      {hold.error && <ErrorView error={hold.error} />}
      <ConfirmDialog
        opened={isAsking}
        isDangerous
        onClose={() => ask(false)}
        title={t("backfill.cancelTitle")}
        confirm={t("backfill.cancel")}
        note={{ label: t("backfill.note") }}
        recipe={cancellation(backfill.id)}
        onConfirm={async (note) => {
          await cancelBackfill(backfill.id, note ? { note } : {});
          await again();
        }}
      >
        {t("backfill.cancelExplain")}
      </ConfirmDialog>
    </Group>
  );
}
