import { Button, Group, Modal, Select, Stack, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { areAllShown, createGroupMapping, deleteGroupMapping, fieldErrors, getGroupMappings, type GroupMappingIn, type GroupMappingOut } from "@/api";
import { Act, type Column, ConfirmDialog, CopyAs, DataTable, EmptyState, ErrorView, Icon, Panel, RowMenu, When } from "@/parts";

const ROLES = ["viewer", "operator", "admin", "platform-admin"] as const;
const FIELDS = ["group", "role", "tenant"];

/** The roles of groups of the identity provider, and ways to give and to take one. */
export function Groups() {
  const { t } = useTranslation("access");
  const queries = useQueryClient();
  const [isCreating, create] = useState(false);
  const [removed, ask] = useState<GroupMappingOut | null>(null);
  const columns = useColumns(ask);
  return (
    <Panel
      title={t("groups")}
      aside={
        <Act needs="keys" size="xs" variant="default" leftSection={<Icon name="plus" size={14} />} onClick={() => create(true)}>
          {t("group.act")}
        </Act>
      }
    >
      <DataTable<GroupMappingOut>
        label={t("groups")}
        queryKey={["groups", "list"]}
        fetchPage={(cursor, signal) => getGroupMappings({ limit: 100, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(mapping) => mapping.id}
        empty={
          <EmptyState icon="lock" title={t("noGroups")} command="horai groups create GROUP --role viewer --tenant default">
            {t("noGroupsExplain")}
          </EmptyState>
        }
      />
      <Modal opened={isCreating} onClose={() => create(false)} title={t("group.title")}>
        {isCreating && <Form onClose={() => create(false)} />}
      </Modal>
      <ConfirmDialog
        opened={removed !== null}
        onClose={() => ask(null)}
        title={t("group.removeTitle", { name: removed?.group, role: removed?.role })}
        confirm={t("group.removeConfirm")}
        needs="keys"
        isDangerous
        onConfirm={async () => {
          await deleteGroupMapping(removed?.id ?? "");
          await queries.invalidateQueries({ queryKey: ["groups"] });
        }}
      >
        {t("group.removeExplain")}
      </ConfirmDialog>
    </Panel>
  );
}

function useColumns(ask: (mapping: GroupMappingOut) => void): Column<GroupMappingOut>[] {
  const { t } = useTranslation("access");
  return useMemo(
    () => [
      { id: "group", header: t("column.group"), width: "minmax(160px, 1.5fr)", cell: (mapping) => mapping.group },
      { id: "role", header: t("column.role"), width: "150px", cell: (mapping) => mapping.role },
      { id: "tenant", header: t("column.tenant"), cell: (mapping) => mapping.tenant ?? t("platform") },
      { id: "created", header: t("column.created"), width: "150px", cell: (mapping) => <When at={mapping.createdAt} as="relative" /> },
      {
        id: "acts",
        header: "",
        width: "56px",
        cell: (mapping) => (
          <RowMenu
            label={t("menu", { name: mapping.group })}
            acts={[{ icon: "trash", label: t("group.remove"), isDangerous: true, needs: "keys", onClick: () => ask(mapping) }]}
          />
        ),
      },
    ],
    [t, ask],
  );
}

function Form({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation(["access", "common"]);
  const [wish, setWish] = useState<GroupMappingIn>({ group: "", role: "viewer", tenant: "" });
  const queries = useQueryClient();
  const change = (part: Partial<GroupMappingIn>) => setWish((before) => ({ ...before, ...part }));
  const body: GroupMappingIn = { group: wish.group, role: wish.role, ...(wish.tenant && wish.role !== "platform-admin" && { tenant: wish.tenant }) };
  const creating = useMutation({
    mutationFn: () => createGroupMapping(body),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["groups"] });
      onClose();
    },
  });
  const faults = fieldErrors(creating.error);
  const cli = ["horai groups create", wish.group, "--role", wish.role, ...(body.tenant ? ["--tenant", body.tenant] : [])].join(" ");
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        creating.mutate();
      }}
    >
      <Stack gap="md">
        <TextInput
          label={t("group.name")}
          description={t("group.nameHint")}
          maxLength={256}
          value={wish.group}
          error={faults["group"]}
          onChange={(event) => change({ group: event.currentTarget.value })}
          data-autofocus
          required
        />
        <Select
          label={t("create.role")}
          data={[...ROLES]}
          value={wish.role}
          allowDeselect={false}
          error={faults["role"]}
          onChange={(role) => role && change({ role: role as GroupMappingIn["role"] })}
        />
        {wish.role !== "platform-admin" && (
          <TextInput label={t("create.tenant")} value={wish.tenant ?? ""} error={faults["tenant"]} onChange={(event) => change({ tenant: event.currentTarget.value })} required />
        )}
        {!areAllShown(creating.error, FIELDS) && <ErrorView error={creating.error} />}
        <Group justify="space-between">
          <CopyAs recipe={{ method: "POST", path: "/api/v1/groups", body, cli }} />
          <Group gap="xs">
            <Button variant="default" onClick={onClose}>
              {t("common:dialog.cancel")}
            </Button>
            <Act needs="keys" type="submit" loading={creating.isPending}>
              {t("group.confirm")}
            </Act>
          </Group>
        </Group>
      </Stack>
    </form>
  );
}
