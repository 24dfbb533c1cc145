import { Button, Group, Stack } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { areAllShown, fieldErrors } from "@/api";
import type { Needs } from "@/live";
import { Act } from "./Act";
import { ErrorView } from "./ErrorView";

interface SavingFormProps {
  /** The fields at which a fault can be shown; a fault of another field is shown below. */
  fields: readonly string[];
  save: () => Promise<unknown>;
  /** The queries that are asked again after it. */
  topic: string;
  confirm: string;
  needs: Needs;
  onClose: () => void;
  children: (faults: Record<string, string>) => ReactNode;
}

/** The form of a dialog: it saves and closes, or shows the faults at their fields and keeps the input. */
export function SavingForm({ fields, save, topic, confirm, needs, onClose, children }: SavingFormProps) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const saving = useMutation({
    mutationFn: save,
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: [topic] });
      onClose();
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        saving.mutate();
      }}
    >
      <Stack gap="md">
        {children(atFields(fieldErrors(saving.error)))}
        {!areAllShown(saving.error, fields) && <ErrorView error={saving.error} />}
        <Group gap="xs" justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t("dialog.cancel")}
          </Button>
          <Act needs={needs} type="submit" loading={saving.isPending}>
            {confirm}
          </Act>
        </Group>
      </Stack>
    </form>
  );
}

/** A fault of an entry, such as `to[1]` or `holidays.3`, also stands at the field of the list. */
export function atFields(faults: Record<string, string>): Record<string, string> {
  const outer = Object.entries(faults).map(([field, text]) => [field.split(/[.[]/)[0] ?? field, text]);
  return { ...Object.fromEntries(outer), ...faults };
}
