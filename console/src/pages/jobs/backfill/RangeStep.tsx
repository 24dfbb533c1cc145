import { Button, Group, Radio, SimpleGrid, Stack } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { areAllShown, fieldErrors, type JobOut } from "@/api";
import { Act, ErrorView, InstantInput } from "@/parts";
import type { Wish } from "./wish";

const HOUR = 3_600_000;
const RANGES = { hour: HOUR, day: 24 * HOUR, week: 168 * HOUR, month: 720 * HOUR };
const MODES = ["missing", "failed", "all"] as const;

interface RangeStepProps {
  job: JobOut;
  wish: Wish;
  onChange: (part: Partial<Wish>) => void;
  error: unknown;
  isBusy: boolean;
  onNext: () => void;
}

/** Which slots: from when to when, and which of them. */
export function RangeStep({ job, wish, onChange, error, isBusy, onNext }: RangeStepProps) {
  const { t } = useTranslation("jobs");
  const errors = fieldErrors(error);
  const zone = job.timezone ?? null;
  return (
    <Stack gap="md">
      <Group gap="xs">
        {(Object.keys(RANGES) as (keyof typeof RANGES)[]).map((range) => (
          <Button
            key={range}
            variant="default"
            size="xs"
            onClick={() => onChange({ from: wholeMinute(Date.now() - RANGES[range]), to: "" })}
          >
            {t(`backfill.range.${range}`)}
          </Button>
        ))}
      </Group>
      <SimpleGrid cols={2} spacing="md">
        <InstantInput label={t("backfill.from")} zone={zone} value={wish.from} onChange={(from) => onChange({ from })} error={errors["from"]} />
        <InstantInput label={t("backfill.to")} zone={zone} value={wish.to} onChange={(to) => onChange({ to })} error={errors["to"]} />
      </SimpleGrid>
      <Radio.Group label={t("backfill.mode")} value={wish.mode} onChange={(mode) => onChange({ mode: mode as Wish["mode"] })}>
        <Stack gap="xs" mt="xs">
          {MODES.map((mode) => (
            <Radio key={mode} value={mode} label={t(`backfill.modes.${mode}`)} description={t(`backfill.modeHints.${mode}`)} />
          ))}
        </Stack>
      </Radio.Group>
      {error !== null && !areAllShown(error, ["from", "to"]) && <ErrorView error={error} />}
      <Group justify="flex-end">
        <Act onClick={onNext} loading={isBusy} why={wish.from ? null : t("backfill.noFrom")}>
          {t("backfill.count")}
        </Act>
      </Group>
    </Stack>
  );
}

function wholeMinute(at: number): string {
  return new Date(Math.floor(at / 60_000) * 60_000).toISOString();
}
