import { Group, SegmentedControl, Stack, Text, TextInput } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { CronWords } from "./CronWords";
import { NextFires } from "./NextFires";
import { bodyOf, type ScheduleDraft } from "./schedule";
import { ZoneSelect } from "./ZoneSelect";

interface ScheduleFieldsProps {
  draft: ScheduleDraft;
  onChange: (draft: ScheduleDraft) => void;
  /** What the server said about `cron`, `every` and `timezone`. */
  errors: Record<string, string>;
}

const KINDS = ["cron", "every", "none"] as const;

/** When something fires: a cron in a zone, an interval, or on demand; below it the fires that would come of it. */
export function ScheduleFields({ draft, onChange, errors }: ScheduleFieldsProps) {
  const { t } = useTranslation("schedules");
  const body = bodyOf(draft);
  return (
    <Stack gap="sm">
      <SegmentedControl
        aria-label={t("kind.label")}
        value={draft.kind}
        onChange={(kind) => onChange({ ...draft, kind: kind as ScheduleDraft["kind"] })}
        data={KINDS.map((kind) => ({ value: kind, label: t(`kind.${kind}`) }))}
      />
      {draft.kind === "cron" && <CronFields draft={draft} onChange={onChange} errors={errors} />}
      {draft.kind === "every" && (
        <TextInput
          label={t("interval")}
          description={t("intervalHint")}
          placeholder="15m"
          value={draft.every}
          onChange={(event) => onChange({ ...draft, every: event.currentTarget.value })}
          error={errors["every"]}
        />
      )}
      {draft.kind === "none" ? (
        <Text size="sm" c="dimmed">
          {t("noneHint")}
        </Text>
      ) : (
        <NextFires schedule={body} />
      )}
    </Stack>
  );
}

function CronFields({ draft, onChange, errors }: ScheduleFieldsProps) {
  const { t } = useTranslation("schedules");
  return (
    <>
      <Group gap="sm" align="flex-start" grow wrap="nowrap">
        <TextInput
          label={t("cron")}
          placeholder="0 2 * * *"
          spellCheck={false}
          value={draft.cron}
          onChange={(event) => onChange({ ...draft, cron: event.currentTarget.value })}
          error={errors["cron"]}
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        />
        <ZoneSelect
          label={t("timezone")}
          value={draft.timezone}
          onChange={(zone) => onChange({ ...draft, timezone: zone })}
          error={errors["timezone"]}
        />
      </Group>
      <Text size="sm" fw={500} mih={22} aria-live="polite">
        {!errors["cron"] && <CronWords cron={draft.cron} />}
      </Text>
    </>
  );
}
