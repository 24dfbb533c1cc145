import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { deleteGroupMapping, getGroupMappings, type GroupMappingOut } from "@/api";
import { Act, type Column, ConfirmDialog, DataTable, EmptyState, Icon, Panel, RowMenu, When } from "@/parts";
import { GroupForm } from "./GroupForm";

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
      <GroupForm opened={isCreating} onClose={() => create(false)} />
      <ConfirmDialog
        opened={removed !== null}
        onClose={() => ask(null)}
        title={t("group.removeTitle", { name: removed?.group, role: removed?.role })}
        confirm={t("group.removeConfirm")}
        needs="keys"
        isDangerous
        recipe={{ method: "DELETE", path: `/api/v1/groups/${removed?.id ?? ""}`, cli: `horai groups delete ${removed?.id ?? ""}` }}
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
