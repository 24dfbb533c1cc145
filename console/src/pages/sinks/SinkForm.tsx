import { Modal, NumberInput, Select, TagsInput, Textarea, TextInput } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { putSink, type SinkInKind, type SinkOut } from "@/api";
import { SavingForm, useDraft, useTextChecks } from "@/parts";
import { bodyOf, draftOf, FIELDS, KINDS, type SinkDraft, type SinkField } from "./draft";
import { sinkSetting } from "./recipes";

/** Headers may hold a token, and so may the address: neither is kept in a draft. */
const SECRETS = ["url", "headers"] as const satisfies readonly SinkField[];
/** The other fields of a kind are required. */
const OPTIONAL: ReadonlySet<SinkField> = new Set(["headers", "batch"]);
const TYPES = ["done", "failed", "dead", "cancelled", "rescheduled"].map((word) => `horai.instance.${word}`);

interface SinkFormProps {
  /** The sink that is changed; null for a new one. */
  changed: SinkOut | null;
  onClose: () => void;
}

/** Creates a sink, or changes it. */
export function SinkForm({ opened, changed, onClose }: SinkFormProps & { opened: boolean }) {
  const { t } = useTranslation("sinks");
  return (
    <Modal opened={opened} onClose={onClose} title={changed ? t("edit.title", { name: changed.name }) : t("create.title")} size="lg">
      {opened && <Form changed={changed} onClose={onClose} />}
    </Modal>
  );
}

function Form({ changed, onClose }: SinkFormProps) {
  const { t } = useTranslation("sinks");
  const kept = useDraft(changed ? `sink ${changed.name} ${changed.version}` : "new sink", draftOf(changed), SECRETS);
  const { draft } = kept;
  const checks = useTextChecks({ ...(!changed && { name: ["name", draft.name] }), ...(draft.kind === "webhook" && { url: ["url", draft.url] }) });
  const change = (fields: Partial<SinkDraft>) => kept.change((before) => ({ ...before, ...fields }));
  return (
    <SavingForm
      fields={["name", "kind", "types", ...FIELDS[draft.kind]]}
      topic="sinks"
      needs="admin"
      kept={kept}
      checks={checks}
      required={{ ...(!changed && { name: draft.name }), ...Object.fromEntries(FIELDS[draft.kind].filter((name: SinkField) => !OPTIONAL.has(name)).map((name: SinkField) => [name, draft[name]])) }}
      recipe={sinkSetting(changed?.name ?? draft.name.trim(), bodyOf(draft))}
      confirm={t(changed ? "edit.confirm" : "create.act")}
      // Version 0: a sink of this name that exists already is not overwritten.
      save={() => putSink(changed?.name ?? draft.name.trim(), bodyOf(draft), { headers: { "If-Match": `"${changed?.version ?? 0}"` } })}
      onClose={onClose}
    >
      {(faults) => (
        <>
          {!changed && (
            <TextInput label={t("column.name")} value={draft.name} error={faults["name"]} onChange={(event) => change({ name: event.currentTarget.value })} data-autofocus required />
          )}
          <Select
            label={t("column.kind")}
            data={KINDS.map((value) => ({ value, label: t(`kind.${value}`) }))}
            value={draft.kind}
            error={faults["kind"]}
            allowDeselect={false}
            onChange={(kind) => kind && change({ kind: kind as SinkInKind })}
          />
          {FIELDS[draft.kind].map((name: SinkField) => (
            <Field key={name} name={name} draft={draft} error={faults[name]} change={change} />
          ))}
          <TagsInput label={t("field.types")} description={t("fieldHint.types")} data={TYPES} value={draft.types} error={faults["types"]} onChange={(types) => change({ types })} />
        </>
      )}
    </SavingForm>
  );
}

interface FieldProps {
  name: SinkField;
  draft: SinkDraft;
  error: string | undefined;
  change: (fields: Partial<SinkDraft>) => void;
}

/** A field of the kind of the sink. */
function Field({ name, draft, error, change }: FieldProps) {
  const { t } = useTranslation("sinks");
  const shown = { label: t(`field.${name}`), description: t(`fieldHint.${name}`), error };
  if (name === "headers") return <Textarea {...shown} autosize minRows={2} value={draft.headers} onChange={(event) => change({ headers: event.currentTarget.value })} />;
  if (name === "batch") {
    return <NumberInput {...shown} min={1} max={500} allowDecimal={false} value={draft.batch} onChange={(value) => change({ batch: value === "" ? "" : Number(value) })} />;
  }
  return <TextInput {...shown} value={draft[name]} onChange={(event) => change({ [name]: event.currentTarget.value })} required />;
}
