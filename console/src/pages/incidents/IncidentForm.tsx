import { Modal, SegmentedControl, Textarea, TextInput } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { createIncident, type IncidentIn } from "@/api";
import { SavingForm, useDraft } from "@/parts";
import { opening } from "./recipes";

/** Opens an incident by hand. */
export function IncidentForm({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const { t } = useTranslation("incidents");
  return (
    <Modal opened={opened} onClose={onClose} title={t("open.title")}>
      {opened && <Form onClose={onClose} />}
    </Modal>
  );
}

function Form({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation("incidents");
  const kept = useDraft<IncidentIn>("new incident", { severity: "P2", title: "" });
  const { draft } = kept;
  const change = (part: Partial<IncidentIn>) => kept.change((before) => ({ ...before, ...part }));
  return (
    <SavingForm
      fields={["title", "note"]}
      topic="incidents"
      needs="platform"
      kept={kept}
      required={{ title: draft.title }}
      recipe={opening(draft)}
      confirm={t("open.act")}
      save={() => createIncident(draft)}
      onClose={onClose}
    >
      {(faults) => (
        <>
          <SegmentedControl
            aria-label={t("column.severity")}
            data={[
              { value: "P2", label: t("open.P2") },
              { value: "P1", label: t("open.P1") },
            ]}
            value={draft.severity}
            onChange={(severity) => change({ severity: severity as IncidentIn["severity"] })}
          />
          <TextInput
            label={t("column.title")}
            value={draft.title}
            error={faults["title"]}
            maxLength={200}
            onChange={(event) => change({ title: event.currentTarget.value })}
            data-autofocus
            required
          />
          <Textarea label={t("note")} value={draft.note ?? ""} error={faults["note"]} onChange={(event) => change({ note: event.currentTarget.value })} />
        </>
      )}
    </SavingForm>
  );
}
