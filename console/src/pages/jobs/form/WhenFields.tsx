import { Checkbox, Group, SegmentedControl, Stack, Text, TextInput, UnstyledButton } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { CronWords, InstantInput, ZoneSelect } from "@/parts";
import type { WhenKind } from "../schedule";
import { EXAMPLE } from "./examples";
import { errorOf, type FieldsProps } from "./field";
import classes from "./form.module.css";

const KINDS: readonly WhenKind[] = ["cron", "every", "at", "delay", "manual"];
const PRESETS = { minutes: "*/5 * * * *", hourly: "0 * * * *", daily: "0 9 * * *", weekdays: "0 9 * * 1-5", monthly: "0 3 1 * *" };

/** When the job fires. */
export function WhenFields(props: FieldsProps) {
  const { draft, onChange, isThere } = props;
  const { t } = useTranslation("jobs");
  const isSettled = (kind: WhenKind): boolean => Boolean(isThere) && (kind === "at" || kind === "delay") && draft.when !== kind;
  return (
    <Stack gap="sm">
      <SegmentedControl
        fullWidth
        aria-label={t("form.when")}
        value={draft.when}
        onChange={(when) => onChange({ when: when as WhenKind })}
        data={KINDS.map((kind) => ({ value: kind, label: t(`form.kind.${kind}`), disabled: isSettled(kind) }))}
      />
      {isThere && (
        <Text size="xs" c="dimmed">
          {t("form.settled")}
        </Text>
      )}
      <Kind {...props} />
    </Stack>
  );
}

function Kind(props: FieldsProps) {
  const { draft, onChange, errors, isThere } = props;
  const { t } = useTranslation("jobs");
  switch (draft.when) {
    case "cron":
      return <CronFields {...props} />;
    case "every":
      return <EveryFields {...props} />;
    case "at":
      return (
        <InstantInput
          label={t("form.at")}
          value={draft.at}
          onChange={(at) => onChange({ at })}
          error={errors["at"]}
          disabled={isThere ?? false}
          maw={280}
        />
      );
    case "delay":
      return (
        <TextInput
          label={t("form.delay")}
          description={t("form.durationHint")}
          placeholder={EXAMPLE.delay}
          value={draft.delay}
          onChange={(event) => onChange({ delay: event.currentTarget.value })}
          error={errors["delay"]}
          disabled={isThere ?? false}
          maw={280}
        />
      );
    case "manual":
      return (
        <Text size="sm" c="dimmed">
          {t("form.manualHint")}
        </Text>
      );
  }
}

function CronFields({ draft, onChange, errors }: FieldsProps) {
  const { t } = useTranslation("jobs");
  return (
    <>
      <Group align="flex-start" gap="sm" grow preventGrowOverflow={false} wrap="nowrap">
        <TextInput
          label={t("form.cron")}
          description={t("form.cronHint")}
          placeholder={EXAMPLE.cron}
          value={draft.cron}
          onChange={(event) => onChange({ cron: event.currentTarget.value, dialect: undefined })}
          error={errorOf(errors, "cron", "dialect")}
          spellCheck={false}
          classNames={{ input: classes.code! }}
        />
        <ZoneField draft={draft} onChange={onChange} errors={errors} />
      </Group>
      <Group gap={6}>
        {(Object.keys(PRESETS) as (keyof typeof PRESETS)[]).map((name) => (
          <UnstyledButton key={name} className={classes.preset} onClick={() => onChange({ cron: PRESETS[name], dialect: undefined })}>
            {t(`form.preset.${name}`)}
          </UnstyledButton>
        ))}
      </Group>
      <Text size="sm" mih={22} fw={500} className={classes.words} aria-live="polite">
        {!errorOf(errors, "cron", "dialect") && <CronWords cron={draft.cron} />}
      </Text>
    </>
  );
}

function EveryFields({ draft, onChange, errors }: FieldsProps) {
  const { t } = useTranslation("jobs");
  return (
    <>
      <TextInput
        label={t("form.every")}
        description={t("form.durationHint")}
        placeholder={EXAMPLE.every}
        value={draft.every}
        onChange={(event) => onChange({ every: event.currentTarget.value })}
        error={errorOf(errors, "every", "everyFrom", "anchor")}
        maw={280}
      />
      <Checkbox
        label={t("form.fromFinish")}
        checked={draft.isFromFinish}
        onChange={(event) => onChange({ isFromFinish: event.currentTarget.checked })}
      />
    </>
  );
}

export function ZoneField({ draft, onChange, errors }: FieldsProps) {
  const { t } = useTranslation("jobs");
  return (
    <ZoneSelect
      label={t("form.timezone")}
      description={t("form.timezoneHint")}
      value={draft.timezone}
      onChange={(timezone) => onChange({ timezone })}
      error={errors["timezone"]}
    />
  );
}
