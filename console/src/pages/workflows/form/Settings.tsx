import { Select, SimpleGrid, Stack, TagsInput, Textarea, TextInput } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { JsonEditor } from "@/parts";
import type { WorkflowSettings } from "./draft";

/** Fields of the server whose faults stand in here. */
export const SETTINGS = ["queue", "priority", "overlap", "misfire", "jitter", "tags", "title", "owner", "description", "payload"] as const;

interface SettingsProps {
  settings: WorkflowSettings;
  onChange: (change: Partial<WorkflowSettings>) => void;
  errors: Record<string, string>;
  /** Without slots nothing is late, overlaps or is spread. */
  hasSlots: boolean;
  onJson: (isValid: boolean) => void;
}

const PRIORITIES = ["core", "high", "normal", "low"] as const;
const OVERLAPS = ["allow", "skip", "queue", "replace"] as const;
const MISFIRES = ["once", "skip", "all"] as const;

/** Where a workflow's runs start, what they are given, and what happens to late and overlapping ones. */
export function Settings({ settings, onChange, errors, hasSlots, onJson }: SettingsProps) {
  const { t } = useTranslation(["workflows", "common"]);
  const error = (field: string): string | undefined => Object.entries(errors).find(([name]) => name === field || name.startsWith(`${field}.`))?.[1];
  return (
    <Stack gap="md">
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md">
        <TextInput
          label={t("form.queue")}
          description={t("form.queueHint")}
          value={settings.queue}
          onChange={(event) => onChange({ queue: event.currentTarget.value })}
          error={error("queue")}
          spellCheck={false}
        />
        <Select
          label={t("form.priority")}
          description={t("form.priorityHint")}
          data={PRIORITIES.map((value) => ({ value, label: t(`common:priority.${value}`) }))}
          value={settings.priority || null}
          onChange={(priority) => onChange({ priority: (priority ?? "") as WorkflowSettings["priority"] })}
          clearable
          error={error("priority")}
        />
        {hasSlots && <Late settings={settings} onChange={onChange} error={error} />}
        <TagsInput label={t("form.tags")} description={t("form.tagsHint")} value={settings.tags} onChange={(tags) => onChange({ tags })} error={error("tags")} />
        <TextInput
          label={t("form.owner")}
          description={t("form.ownerHint")}
          value={settings.owner}
          onChange={(event) => onChange({ owner: event.currentTarget.value })}
          error={error("owner")}
          maxLength={200}
        />
      </SimpleGrid>
      <Textarea
        label={t("form.description")}
        description={t("form.descriptionHint")}
        value={settings.description}
        onChange={(event) => onChange({ description: event.currentTarget.value })}
        error={error("description")}
        autosize
        maxRows={8}
        maxLength={4_000}
      />
      <JsonEditor
        label={t("trigger.payload")}
        description={t("form.payloadHint")}
        value={settings.payload}
        onChange={(payload, isValid) => {
          onChange({ payload });
          onJson(isValid);
        }}
        error={error("payload")}
      />
    </Stack>
  );
}

type LateProps = Pick<SettingsProps, "settings" | "onChange"> & { error: (field: string) => string | undefined };

function Late({ settings, onChange, error }: LateProps) {
  const { t } = useTranslation("workflows");
  const policy = typeof settings.misfire === "string" ? settings.misfire : settings.misfire.policy;
  return (
    <>
      <Select
        label={t("form.misfire")}
        description={t("form.misfireHint")}
        data={MISFIRES.map((value) => ({ value, label: t(`form.misfires.${value}`) }))}
        value={policy}
        // One that says more than its policy, such as how many are caught up, keeps that until another is chosen.
        onChange={(chosen) => chosen !== policy && onChange({ misfire: (chosen ?? "once") as WorkflowSettings["misfire"] })}
        allowDeselect={false}
        error={error("misfire")}
      />
      <Select
        label={t("form.overlap")}
        description={t("form.overlapHint")}
        data={OVERLAPS.map((value) => ({ value, label: t(`form.overlaps.${value}`) }))}
        value={settings.overlap}
        onChange={(overlap) => onChange({ overlap: (overlap ?? "allow") as WorkflowSettings["overlap"] })}
        allowDeselect={false}
        error={error("overlap")}
      />
      <TextInput
        label={t("form.jitter")}
        description={t("form.jitterHint")}
        value={settings.jitter}
        onChange={(event) => onChange({ jitter: event.currentTarget.value })}
        error={error("jitter")}
        spellCheck={false}
      />
    </>
  );
}
