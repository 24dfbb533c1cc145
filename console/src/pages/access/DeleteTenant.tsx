import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { deleteTenant, type TenantOut } from "@/api";
import { Act, CopyAs, ErrorView } from "@/parts";

/** Asks for the name of the tenant before all of its data is deleted. */
export function DeleteTenant({ tenant, onClose }: { tenant: TenantOut | null; onClose: () => void }) {
  const { t } = useTranslation("access");
  return (
    <Modal opened={tenant !== null} onClose={onClose} title={t("deletion.title", { name: tenant?.name })}>
      {tenant && <Question name={tenant.name} onClose={onClose} />}
    </Modal>
  );
}

function Question({ name, onClose }: { name: string; onClose: () => void }) {
  const { t } = useTranslation(["access", "common"]);
  const queries = useQueryClient();
  const [typed, type] = useState("");
  const deleting = useMutation({
    mutationFn: () => deleteTenant(name, { confirm: typed }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["tenants"] });
      onClose();
    },
  });
  const recipe = { method: "DELETE", path: `/api/v1/tenants/${name}?confirm=${name}`, cli: `horai tenants delete ${name} --confirm ${name}` } as const;
  return (
    <Stack gap="md">
      <Text size="sm">{t("deletion.explain")}</Text>
      <TextInput label={t("deletion.name", { name })} value={typed} onChange={(event) => type(event.currentTarget.value)} data-autofocus />
      <ErrorView error={deleting.error} />
      <Group justify="space-between">
        <CopyAs recipe={recipe} />
        <Group gap="xs">
          <Button variant="default" onClick={onClose}>
            {t("common:dialog.cancel")}
          </Button>
          <Act
            needs="keys"
            color="red"
            loading={deleting.isPending}
            why={typed === name ? null : t("deletion.missing")}
            onClick={() => deleting.mutate()}
          >
            {t("deletion.confirm")}
          </Act>
        </Group>
      </Group>
    </Stack>
  );
}
