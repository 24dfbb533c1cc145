import { Modal, NumberInput, PasswordInput, SegmentedControl, Select, TagsInput, TextInput } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { type ChannelFieldsKind, type ChannelOut, createChannel, putChannel } from "@/api";
import { SavingForm, useDraft, useTextChecks } from "@/parts";
import { bodyOf, type ChannelDraft, type ChannelField, draftOf, FIELDS, KINDS } from "./channel";
import { channelSetting } from "./recipes";

const LANGUAGES = ["en", "zh-CN"] as const;
const SECURITIES = ["starttls", "tls", "none"] as const;
/** The address of a channel holds its token. None of these is kept in a draft. */
const SECRETS = ["url", "secret", "password"] as const satisfies readonly ChannelField[];
const REQUIRED: ReadonlySet<ChannelField> = new Set(["url", "host", "from", "to"]);

interface ChannelFormProps {
  /** The channel that is changed; null for a new one. */
  changed: ChannelOut | null;
  onClose: () => void;
}

/** Creates a channel, or replaces its fields. */
export function ChannelForm({ opened, changed, onClose }: ChannelFormProps & { opened: boolean }) {
  const { t } = useTranslation("alerts");
  return (
    <Modal opened={opened} onClose={onClose} title={changed ? t("channels.editTitle", { name: changed.name }) : t("channels.createTitle")} size="lg">
      {opened && <Form changed={changed} onClose={onClose} />}
    </Modal>
  );
}

function Form({ changed, onClose }: ChannelFormProps) {
  const { t, i18n } = useTranslation("alerts");
  const kept = useDraft(changed ? `alert channel ${changed.name} ${changed.version}` : "new alert channel", draftOf(changed, i18n.language), SECRETS);
  const { draft } = kept;
  const checks = useTextChecks({ ...(!changed && { name: ["name", draft.name] }), ...(draft.kind !== "email" && draft.url !== "***" && { url: ["url", draft.url] }) });
  const change = (fields: Partial<ChannelDraft>) => kept.change((before) => ({ ...before, ...fields }));
  return (
    <SavingForm
      fields={["name", "kind", ...FIELDS[draft.kind]]}
      topic="alerts"
      needs="keys"
      kept={kept}
      checks={checks}
      required={{ ...(!changed && { name: draft.name }), ...Object.fromEntries(FIELDS[draft.kind].filter((name: ChannelField) => REQUIRED.has(name)).map((name: ChannelField) => [name, draft[name]])) }}
      recipe={channelSetting(changed?.name ?? draft.name.trim(), bodyOf(draft), !changed)}
      confirm={t(changed ? "save" : "channels.create")}
      save={() =>
        changed
          ? putChannel(changed.name, bodyOf(draft), { headers: { "If-Match": `"${changed.version}"` } })
          : createChannel({ name: draft.name, ...bodyOf(draft) })
      }
      onClose={onClose}
    >
      {(faults) => (
        <>
          {!changed && (
            <TextInput label={t("name")} description={t("nameHint")} value={draft.name} error={faults["name"]} onChange={(event) => change({ name: event.currentTarget.value })} data-autofocus required />
          )}
          <Select
            label={t("channels.kind")}
            data={KINDS.map((value) => ({ value, label: t(`channelKind.${value}`) }))}
            value={draft.kind}
            error={faults["kind"]}
            allowDeselect={false}
            onChange={(kind) => kind && change({ kind: kind as ChannelFieldsKind })}
          />
          {FIELDS[draft.kind].map((name: ChannelField) => (
            <Field key={name} name={name} draft={draft} stored={changed} error={faults[name]} change={change} />
          ))}
          <SegmentedControl
            aria-label={t("channels.language")}
            data={LANGUAGES.map((value) => ({ value, label: t(`language.${value}`) }))}
            value={draft.language}
            onChange={(language) => change({ language: language as ChannelDraft["language"] })}
          />
        </>
      )}
    </SavingForm>
  );
}

interface FieldProps {
  name: ChannelField;
  draft: ChannelDraft;
  stored: ChannelOut | null;
  error: string | undefined;
  change: (fields: Partial<ChannelDraft>) => void;
}

/** A field of the kind of the channel. */
function Field({ name, draft, stored, error, change }: FieldProps) {
  const { t } = useTranslation("alerts");
  const shown = { label: t(`channelField.${name}`), error, required: REQUIRED.has(name) };
  if (name === "url" || name === "secret" || name === "password") {
    const hint = stored?.[name] ? t("channels.keeps") : t(`channelHint.${name}`);
    return <PasswordInput {...shown} description={hint} autoComplete="off" value={draft[name]} onChange={(event) => change({ [name]: event.currentTarget.value })} />;
  }
  if (name === "port") {
    return <NumberInput {...shown} description={t("channelHint.port")} min={1} max={65_535} allowDecimal={false} value={draft.port} onChange={(value) => change({ port: value === "" ? "" : Number(value) })} />;
  }
  if (name === "security") {
    return (
      <Select
        {...shown}
        data={SECURITIES.map((value) => ({ value, label: t(`security.${value}`) }))}
        value={draft.security || "starttls"}
        allowDeselect={false}
        onChange={(security) => change({ security: security as ChannelDraft["security"] })}
      />
    );
  }
  if (name === "to") return <TagsInput {...shown} description={t("channelHint.to")} value={draft.to} maxTags={50} onChange={(to) => change({ to })} />;
  return <TextInput {...shown} value={draft[name]} onChange={(event) => change({ [name]: event.currentTarget.value })} />;
}
