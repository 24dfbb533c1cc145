import { Button, Group, SimpleGrid, Stack, Text, TextInput } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { areAllShown, type BackfillPlanOut, fieldErrors, type JobOut } from "@/api";
import { Act, CopyAs, ErrorView, formatDuration, Stat, When } from "@/parts";
import { backfilling } from "../recipes";
import { backfillOf, secondsAt, type Wish } from "./wish";

interface CountStepProps {
  job: JobOut;
  plan: BackfillPlanOut;
  wish: Wish;
  onChange: (part: Partial<Wish>) => void;
  error: unknown;
  isBusy: boolean;
  onBack: () => void;
  onStart: () => void;
}

/** How many it are, to the slot, and how fast they shall run. */
export function CountStep({ job, plan, wish, onChange, error, isBusy, onBack, onStart }: CountStepProps) {
  const { t, i18n } = useTranslation("jobs");
  const number = new Intl.NumberFormat(i18n.language);
  const errors = fieldErrors(error);
  const body = backfillOf(wish);
  const seconds = secondsAt(wish.rate, plan.total);
  return (
    <Stack gap="md">
      <SimpleGrid cols={3} spacing="md">
        <Stat label={t("backfill.total")} value={number.format(plan.total)} hint={t(`backfill.modes.${plan.mode}`)} />
        <Stat label={t("backfill.slots")} value={number.format(plan.slots)} hint={t("backfill.slotsHint")} />
        <Stat label={t("backfill.skipped")} value={number.format(plan.skipped)} hint={t("backfill.skippedHint")} />
      </SimpleGrid>
      {plan.first && (
        <Text size="sm" c="dimmed">
          {t("backfill.first")} <When at={plan.first} zone={job.timezone ?? null} />
          {" – "}
          <When at={plan.last} zone={job.timezone ?? null} />
        </Text>
      )}
      <SimpleGrid cols={2} spacing="md">
        <TextInput
          label={t("backfill.rate")}
          description={t("backfill.rateHint")}
          placeholder="100/s"
          value={wish.rate}
          onChange={(event) => onChange({ rate: event.currentTarget.value })}
          error={errors["rate"]}
        />
        <TextInput
          label={t("backfill.concurrency")}
          description={t("backfill.concurrencyHint")}
          placeholder={String(plan.maxConcurrency)}
          value={wish.maxConcurrency}
          onChange={(event) => onChange({ maxConcurrency: event.currentTarget.value })}
          error={errors["maxConcurrency"]}
        />
      </SimpleGrid>
      <TextInput
        label={t("backfill.note")}
        value={wish.note}
        onChange={(event) => onChange({ note: event.currentTarget.value })}
        error={errors["note"]}
        maxLength={2_000}
      />
      <Text size="sm" c="dimmed" mih={22}>
        {seconds !== null && t("backfill.lasts", { time: formatDuration(seconds * 1_000) })}
      </Text>
      {error !== null && !areAllShown(error, ["rate", "maxConcurrency", "note"]) && <ErrorView error={error} />}
      <Group justify="space-between">
        <CopyAs recipe={backfilling(job, body)} />
        <Group gap="xs">
          <Button variant="default" onClick={onBack}>
            {t("backfill.back")}
          </Button>
          <Act onClick={onStart} loading={isBusy} why={plan.total > 0 ? null : t("backfill.nothing")}>
            {t("backfill.start", { count: plan.total, shown: number.format(plan.total) })}
          </Act>
        </Group>
      </Group>
    </Stack>
  );
}
