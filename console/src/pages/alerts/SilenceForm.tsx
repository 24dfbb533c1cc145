import { Modal, SegmentedControl, Select, Textarea, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { createSilence, getRules } from "@/api";
import { useSession } from "@/live";
import { InstantInput, JobSelect, SavingForm, useDraft, useTextChecks } from "@/parts";
import { silencing } from "./recipes";
import { bodyOf, type SilenceDraft } from "./silence";

/** The alerts that a new silence is for. */
export interface SilencedFields {
  rule?: string;
  job?: string;
}

interface SilenceFormProps {
  of: SilencedFields;
  onClose: () => void;
}

/** Creates a silence. */
export function SilenceForm({ opened, of, onClose }: SilenceFormProps & { opened: boolean }) {
  const { t } = useTranslation("alerts");
  return (
    <Modal opened={opened} onClose={onClose} title={t("silence.title")} size="lg">
      {opened && <Form of={of} onClose={onClose} />}
    </Modal>
  );
}

function Form({ of, onClose }: SilenceFormProps) {
  const { t } = useTranslation("alerts");
  const hasJobs = useSession().data?.role !== "platform-admin";
  const kept = useDraft<SilenceDraft>(`new silence ${of.rule ?? ""} ${of.job ?? ""}`, { rule: "", job: "", tag: "", startsAt: "", ending: "after", lasts: "2h", endsAt: "", note: "", ...of });
  const { draft } = kept;
  const checks = useTextChecks(draft.ending === "after" ? { lasts: ["duration", draft.lasts] } : {});
  const rules = useQuery({ queryKey: ["alerts", "rule-names"], queryFn: ({ signal }) => getRules({ limit: 500 }, { signal }) });
  const names = [...new Set([draft.rule, ...(rules.data?.items ?? []).map((rule) => rule.name)].filter(Boolean))];
  const change = (fields: Partial<SilenceDraft>) => kept.change((before) => ({ ...before, ...fields }));
  return (
    <SavingForm
      fields={["rule", "job", "tag", "startsAt", "endsAt", "lasts", "note"]}
      topic="alerts"
      needs="holds"
      kept={kept}
      checks={checks}
      required={draft.ending === "after" ? { lasts: draft.lasts } : { endsAt: draft.endsAt }}
      recipe={silencing(bodyOf(draft))}
      confirm={t("silence.create")}
      save={() => createSilence(bodyOf(draft))}
      onClose={onClose}
    >
      {(faults) => (
        <>
          <Select label={t("rule")} placeholder={t("silence.any")} description={t("silence.hint")} data={names} value={draft.rule || null} error={faults["rule"]} clearable searchable onChange={(rule) => change({ rule: rule ?? "" })} />
          {hasJobs && <JobSelect label={t("field.job")} placeholder={t("silence.any")} value={draft.job} error={faults["job"]} onChange={(job) => change({ job: job ?? "" })} />}
          {hasJobs && <TextInput label={t("field.tag")} value={draft.tag} error={faults["tag"]} onChange={(event) => change({ tag: event.currentTarget.value })} />}
          <InstantInput label={t("silence.startsAt")} value={draft.startsAt} error={faults["startsAt"]} onChange={(startsAt) => change({ startsAt })} />
          <SegmentedControl
            aria-label={t("silence.ending")}
            data={(["after", "at"] as const).map((value) => ({ value, label: t(`silence.ends.${value}`) }))}
            value={draft.ending}
            onChange={(ending) => change({ ending: ending as SilenceDraft["ending"] })}
          />
          {draft.ending === "after" ? (
            <TextInput label={t("silence.lasts")} description={t("silence.lastsHint")} value={draft.lasts} error={faults["lasts"] ?? faults["endsAt"]} onChange={(event) => change({ lasts: event.currentTarget.value })} required />
          ) : (
            <InstantInput label={t("silence.endsAt")} value={draft.endsAt} error={faults["endsAt"] ?? faults["lasts"]} onChange={(endsAt) => change({ endsAt })} required />
          )}
          <Textarea label={t("note")} value={draft.note} error={faults["note"]} maxLength={2_000} onChange={(event) => change({ note: event.currentTarget.value })} />
        </>
      )}
    </SavingForm>
  );
}
