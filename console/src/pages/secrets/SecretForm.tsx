import { Button, Group, Modal, PasswordInput, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { areAllShown, createSecret, fieldErrors, putSecret, type SecretOut } from "@/api";
import { Act, CheckedForm, ErrorView, useDraft, useTextChecks } from "@/parts";
import { Restored } from "@/parts/Restored";

interface SecretFormProps {
  opened: boolean;
  /** The secret whose value is replaced; null for a new one. */
  replaced: SecretOut | null;
  onClose: () => void;
}

/** Creates a secret, or replaces its value. */
export function SecretForm({ opened, replaced, onClose }: SecretFormProps) {
  const { t } = useTranslation("secrets");
  return (
    <Modal opened={opened} onClose={onClose} title={replaced ? t("replace.title", { name: replaced.name }) : t("create.title")}>
      {opened && <Form replaced={replaced} onClose={onClose} />}
    </Modal>
  );
}

function Form({ replaced, onClose }: Omit<SecretFormProps, "opened">) {
  const { t } = useTranslation(["secrets", "common"]);
  const queries = useQueryClient();
  const kept = useDraft("new secret", { name: "" });
  const { name } = kept.draft;
  // A value is in no draft: it is gone with the form.
  const [value, setValue] = useState("");
  const saving = useMutation({
    mutationFn: () => (replaced ? putSecret(replaced.name, { value }) : createSecret({ name, value })),
    onSuccess: async () => {
      if (!replaced) kept.forget();
      await queries.invalidateQueries({ queryKey: ["secrets"] });
      onClose();
    },
  });
  const checks = useTextChecks(replaced ? {} : { name: ["name", name] });
  const told = fieldErrors(saving.error);
  return (
    <CheckedForm required={{ ...(!replaced && { name }), value }} checks={checks} onSubmit={() => saving.mutate()}>
      {(own) => (
        <Stack gap="md">
          {!replaced && <Restored draft={kept} />}
          {replaced ? (
            <Text size="sm">{t("replace.explain")}</Text>
          ) : (
            <TextInput
              label={t("create.name")}
              description={t("create.nameHint")}
              value={name}
              error={own["name"] ?? told["name"]}
              onChange={(event) => kept.change({ name: event.currentTarget.value })}
              data-autofocus
              required
            />
          )}
          <PasswordInput
            label={t("create.value")}
            description={t("create.valueHint")}
            value={value}
            error={own["value"] ?? told["value"]}
            autoComplete="off"
            onChange={(event) => setValue(event.currentTarget.value)}
            required
          />
          {!areAllShown(saving.error, ["name", "value"]) && <ErrorView error={saving.error} />}
          <Group gap="xs" justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {t("common:dialog.cancel")}
            </Button>
            <Act needs="admin" type="submit" loading={saving.isPending}>
              {t(replaced ? "replace.confirm" : "create.confirm")}
            </Act>
          </Group>
        </Stack>
      )}
    </CheckedForm>
  );
}
