import { Modal, MultiSelect, NumberInput, Select, SimpleGrid, Switch, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { createRule, getChannels, putRule, type RuleFieldsKind, type RuleOut } from "@/api";
import { useSession } from "@/live";
import { JobSelect, SavingForm, useDraft, useTextChecks, ZoneSelect } from "@/parts";
import { ruleSetting } from "./recipes";
import { bodyOf, draftOf, FIELDS, kindsFor, MODES, type RuleDraft, type RuleField, WEEKDAYS } from "./rule";

interface RuleFormProps {
  /** The rule that is changed; null for a new one. */
  changed: RuleOut | null;
  onClose: () => void;
}

/** Creates a rule, or replaces its fields. */
export function RuleForm({ opened, changed, onClose }: RuleFormProps & { opened: boolean }) {
  const { t } = useTranslation("alerts");
  return (
    <Modal opened={opened} onClose={onClose} title={changed ? t("rules.editTitle", { name: changed.name }) : t("rules.createTitle")} size="lg">
      {opened && <Form changed={changed} onClose={onClose} />}
    </Modal>
  );
}

function Form({ changed, onClose }: RuleFormProps) {
  const { t } = useTranslation("alerts");
  const kinds = kindsFor(useSession().data);
  const kept = useDraft(changed ? `alert rule ${changed.name} ${changed.version}` : "new alert rule", draftOf(changed, kinds[0] ?? "MODE_ENTERED"));
  const { draft } = kept;
  const own: Partial<Record<RuleField, string>> = Object.fromEntries(FIELDS[draft.kind].map((name: RuleField) => [name, String(draft[name])]));
  const checks = useTextChecks({ ...(!changed && { name: ["name", draft.name] }), after: ["duration", own.after], groupWait: ["duration", draft.groupWait], repeatEvery: ["duration", draft.repeatEvery] });
  const channels = useQuery({ queryKey: ["alerts", "channel-names"], queryFn: ({ signal }) => getChannels({ limit: 500 }, { signal }) });
  const names = [...new Set([...draft.channels, ...(channels.data?.items ?? []).map((channel) => channel.name)])];
  const change = (fields: Partial<RuleDraft>) => kept.change((before) => ({ ...before, ...fields }));
  return (
    <SavingForm
      fields={["name", "kind", "channels", "groupWait", "repeatEvery", ...FIELDS[draft.kind]]}
      topic="alerts"
      needs="keys"
      kept={kept}
      checks={checks}
      required={requiredOf(draft, !changed)}
      recipe={ruleSetting(changed?.name ?? draft.name.trim(), bodyOf(draft), !changed)}
      confirm={t(changed ? "save" : "rules.create")}
      save={() =>
        changed
          ? putRule(changed.name, bodyOf(draft), { headers: { "If-Match": `"${changed.version}"` } })
          : createRule({ name: draft.name, ...bodyOf(draft) })
      }
      onClose={onClose}
    >
      {(faults) => (
        <>
          {!changed && (
            <TextInput label={t("name")} description={t("nameHint")} value={draft.name} error={faults["name"]} onChange={(event) => change({ name: event.currentTarget.value })} data-autofocus required />
          )}
          <Select
            label={t("condition")}
            data={kinds.map((value) => ({ value, label: t(`kind.${value}`) }))}
            value={draft.kind}
            error={faults["kind"]}
            allowDeselect={false}
            onChange={(kind) => kind && change({ kind: kind as RuleFieldsKind })}
          />
          {FIELDS[draft.kind].map((name: RuleField) => (
            <Field key={name} name={name} draft={draft} error={faults[name]} change={change} />
          ))}
          <MultiSelect
            label={t("channels.title")}
            description={names.length === 0 ? t("rules.noChannel") : t("rules.channelsHint")}
            data={names}
            value={draft.channels}
            error={faults["channels"]}
            searchable
            required
            onChange={(chosen) => change({ channels: chosen })}
          />
          <SimpleGrid cols={2}>
            <TextInput label={t("rules.groupWait")} description={t("rules.groupWaitHint")} value={draft.groupWait} error={faults["groupWait"]} onChange={(event) => change({ groupWait: event.currentTarget.value })} required />
            <TextInput label={t("rules.repeatEvery")} description={t("rules.repeatEveryHint")} value={draft.repeatEvery} error={faults["repeatEvery"]} onChange={(event) => change({ repeatEvery: event.currentTarget.value })} required />
          </SimpleGrid>
          <Switch label={t("rules.enabled")} checked={draft.enabled} onChange={(event) => change({ enabled: event.currentTarget.checked })} />
        </>
      )}
    </SavingForm>
  );
}

/** The values without which there is no rule. */
function requiredOf({ name, kind, channels, groupWait, repeatEvery, job, by }: RuleDraft, isNew: boolean): Record<string, unknown> {
  return { ...(isNew && { name }), channels, groupWait, repeatEvery, ...(kind === "NOT_SUCCESS_BY" && { job, by }) };
}

interface FieldProps {
  name: RuleField;
  draft: RuleDraft;
  error: string | undefined;
  change: (fields: Partial<RuleDraft>) => void;
}

/** A field of the kind of the rule. */
function Field({ name, draft, error, change }: FieldProps) {
  const { t } = useTranslation("alerts");
  const isRequired = draft.kind === "NOT_SUCCESS_BY" && (name === "job" || name === "by");
  const shown = { label: t(`field.${name}`), description: t(`fieldHint.${name}`), error, required: isRequired };
  if (name === "job") return <JobSelect {...shown} value={draft.job} onChange={(job) => change({ job: job ?? "" })} />;
  if (name === "timezone") return <ZoneSelect {...shown} value={draft.timezone || null} placeholder="UTC" onChange={(timezone) => change({ timezone })} />;
  if (name === "burnRate") {
    return <NumberInput {...shown} value={draft.burnRate} min={0} max={1_000} onChange={(value) => change({ burnRate: value === "" ? "" : Number(value) })} />;
  }
  if (name === "modes") return <MultiSelect {...shown} data={MODES} value={draft.modes} onChange={(modes) => change({ modes })} />;
  if (name === "weekdays") {
    return (
      <MultiSelect
        {...shown}
        data={WEEKDAYS.map((value) => ({ value, label: t(`weekday.${value}`) }))}
        value={draft.weekdays}
        onChange={(weekdays) => change({ weekdays })}
      />
    );
  }
  return <TextInput {...shown} value={draft[name]} onChange={(event) => change({ [name]: event.currentTarget.value })} />;
}
