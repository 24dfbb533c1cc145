import { Button, Group, Stack } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { areAllShown, fieldErrors } from "@/api";
import type { Needs } from "@/live";
import { Act } from "./Act";
import { CheckedForm } from "./CheckedForm";
import { CopyAs } from "./CopyAs";
import type { KeptDraft } from "./drafts";
import { ErrorView } from "./ErrorView";
import type { Recipe } from "./recipes";
import { Restored } from "./Restored";

interface SavingFormProps {
  /** The fields at which a fault can be shown; a fault of another field is shown below. */
  fields: readonly string[];
  save: () => Promise<unknown>;
  /** The queries that are asked again after it. */
  topic: string;
  confirm: string;
  needs: Needs;
  /** The values that must not be empty, by field. */
  required?: Readonly<Record<string, unknown>>;
  /** The faults of what is typed, by field: nothing is sent while there are any. */
  checks?: Record<string, string>;
  /** The draft of the form: it is kept when the dialog closes, and forgotten when it was saved. */
  kept?: Pick<KeptDraft<object>, "isRestored" | "discard" | "forget">;
  /** The same by curl, CLI and Python. */
  recipe?: Recipe;
  onClose: () => void;
  children: (faults: Record<string, string>) => ReactNode;
}

/** The form of a dialog: it saves and closes, or shows the faults at their fields and keeps the input. */
export function SavingForm({ fields, save, topic, confirm, needs, required, checks, kept, recipe, onClose, children }: SavingFormProps) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const saving = useMutation({
    mutationFn: save,
    onSuccess: async () => {
      kept?.forget();
      await queries.invalidateQueries({ queryKey: [topic] });
      onClose();
    },
  });
  return (
    <CheckedForm {...(required && { required })} {...(checks && { checks })} onSubmit={() => saving.mutate()}>
      {(own) => (
        <Stack gap="md">
          {kept && <Restored draft={kept} />}
          {children({ ...atFields(fieldErrors(saving.error)), ...own })}
          {!areAllShown(saving.error, fields) && <ErrorView error={saving.error} />}
          <Group justify={recipe ? "space-between" : "flex-end"}>
            {recipe && <CopyAs recipe={recipe} />}
            <Group gap="xs">
              <Button variant="default" onClick={onClose}>
                {t("dialog.cancel")}
              </Button>
              <Act needs={needs} type="submit" loading={saving.isPending}>
                {confirm}
              </Act>
            </Group>
          </Group>
        </Stack>
      )}
    </CheckedForm>
  );
}

/** A fault of an entry, such as `to[1]` or `holidays.3`, also stands at the field of the list. */
export function atFields(faults: Record<string, string>): Record<string, string> {
  const outer = Object.entries(faults).map(([field, text]) => [field.split(/[.[]/)[0] ?? field, text]);
  return { ...Object.fromEntries(outer), ...faults };
}
