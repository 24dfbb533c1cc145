import { Button, Group, Modal, SegmentedControl, Stack, Textarea, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { areAllShown, createIncident, fieldErrors, type IncidentIn } from "@/api";
import { Act, ErrorView } from "@/parts";

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
  const { t } = useTranslation(["incidents", "common"]);
  const queries = useQueryClient();
  const [draft, change] = useState<IncidentIn>({ severity: "P2", title: "" });
  const saving = useMutation({
    mutationFn: () => createIncident(draft),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["incidents"] });
      onClose();
    },
  });
  const faults = fieldErrors(saving.error);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        saving.mutate();
      }}
    >
      <Stack gap="md">
        <SegmentedControl
          aria-label={t("column.severity")}
          data={[
            { value: "P2", label: t("open.P2") },
            { value: "P1", label: t("open.P1") },
          ]}
          value={draft.severity}
          onChange={(severity) => change({ ...draft, severity: severity as IncidentIn["severity"] })}
        />
        <TextInput
          label={t("column.title")}
          value={draft.title}
          error={faults["title"]}
          maxLength={200}
          onChange={(event) => change({ ...draft, title: event.currentTarget.value })}
          data-autofocus
          required
        />
        <Textarea label={t("note")} value={draft.note ?? ""} error={faults["note"]} onChange={(event) => change({ ...draft, note: event.currentTarget.value })} />
        {!areAllShown(saving.error, ["title", "note"]) && <ErrorView error={saving.error} />}
        <Group gap="xs" justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t("common:dialog.cancel")}
          </Button>
          <Act needs="platform" type="submit" loading={saving.isPending}>
            {t("open.act")}
          </Act>
        </Group>
      </Stack>
    </form>
  );
}
