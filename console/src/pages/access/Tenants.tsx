import { Button, Group, Modal, Stack, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { areAllShown, createTenant, fieldErrors, getTenants, type TenantOut } from "@/api";
import { Act, type Column, CopyAs, DataTable, EmptyState, ErrorView, Icon, Panel, When } from "@/parts";

/** All tenants, and a way to create one. */
export function Tenants() {
  const { t } = useTranslation("access");
  const [isCreating, create] = useState(false);
  const columns = useColumns();
  return (
    <Panel
      title={t("tenants")}
      aside={
        <Act needs="keys" size="xs" variant="default" leftSection={<Icon name="plus" size={14} />} onClick={() => create(true)}>
          {t("tenant.act")}
        </Act>
      }
    >
      <DataTable<TenantOut>
        label={t("tenants")}
        queryKey={["tenants", "list"]}
        fetchPage={(cursor, signal) => getTenants({ limit: 100, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(tenant) => tenant.id}
        empty={<EmptyState icon="lock" title={t("noTenants")} />}
      />
      <Modal opened={isCreating} onClose={() => create(false)} title={t("tenant.title")}>
        {isCreating && <Form onClose={() => create(false)} />}
      </Modal>
    </Panel>
  );
}

function useColumns(): Column<TenantOut>[] {
  const { t } = useTranslation("access");
  return useMemo(
    () => [
      { id: "name", header: t("column.name"), cell: (tenant) => tenant.name },
      { id: "created", header: t("column.created"), width: "200px", cell: (tenant) => <When at={tenant.createdAt} as="relative" /> },
    ],
    [t],
  );
}

function Form({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation(["access", "common"]);
  const [name, setName] = useState("");
  const queries = useQueryClient();
  const creating = useMutation({
    mutationFn: () => createTenant({ name }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["tenants"] });
      onClose();
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        creating.mutate();
      }}
    >
      <Stack gap="md">
        <TextInput
          label={t("tenant.name")}
          description={t("tenant.nameHint")}
          value={name}
          error={fieldErrors(creating.error)["name"]}
          onChange={(event) => setName(event.currentTarget.value)}
          data-autofocus
          required
        />
        {!areAllShown(creating.error, ["name"]) && <ErrorView error={creating.error} />}
        <Group justify="space-between">
          <CopyAs recipe={{ method: "POST", path: "/api/v1/tenants", body: { name }, cli: `horai tenants create ${name}` }} />
          <Group gap="xs">
            <Button variant="default" onClick={onClose}>
              {t("common:dialog.cancel")}
            </Button>
            <Act needs="keys" type="submit" loading={creating.isPending}>
              {t("tenant.confirm")}
            </Act>
          </Group>
        </Group>
      </Stack>
    </form>
  );
}
