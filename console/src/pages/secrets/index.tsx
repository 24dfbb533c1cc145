import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { deleteSecret, getSecrets, type SecretOut } from "@/api";
import { Act, type Column, ConfirmDialog, DataTable, EmptyState, Icon, Page, RowMenu, When } from "@/parts";
import { SecretForm } from "./SecretForm";

/** The named secrets of the tenant. Their values are never shown. */
export default function SecretsPage() {
  const { t } = useTranslation(["secrets", "common"]);
  const queries = useQueryClient();
  const [isCreating, create] = useState(false);
  const [replaced, replace] = useState<SecretOut | null>(null);
  const [deleted, ask] = useState<SecretOut | null>(null);
  const columns = useColumns(replace, ask);
  return (
    <Page
      title={t("common:page.secrets")}
      lead={t("lead")}
      actions={
        <Act needs="admin" onClick={() => create(true)} leftSection={<Icon name="plus" size={16} />}>
          {t("create.act")}
        </Act>
      }
    >
      <DataTable<SecretOut>
        label={t("secrets")}
        queryKey={["secrets", "list"]}
        fetchPage={(cursor, signal) => getSecrets({ limit: 100, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(secret) => secret.name}
        empty={
          <EmptyState icon="lock" title={t("empty.title")} command="horai secrets set crm-token --file token.txt">
            {t("empty.explain")}
          </EmptyState>
        }
      />
      <SecretForm opened={isCreating || replaced !== null} replaced={replaced} onClose={() => (replaced ? replace(null) : create(false))} />
      <ConfirmDialog
        opened={deleted !== null}
        onClose={() => ask(null)}
        title={t("delete.title", { name: deleted?.name })}
        confirm={t("delete.confirm")}
        needs="admin"
        isDangerous
        recipe={{ method: "DELETE", path: `/api/v1/secrets/${deleted?.name ?? ""}`, cli: `horai secrets delete ${deleted?.name ?? ""}` }}
        onConfirm={async () => {
          await deleteSecret(deleted?.name ?? "");
          await queries.invalidateQueries({ queryKey: ["secrets"] });
        }}
      >
        {t("delete.explain")}
      </ConfirmDialog>
    </Page>
  );
}

function useColumns(replace: (secret: SecretOut) => void, ask: (secret: SecretOut) => void): Column<SecretOut>[] {
  const { t } = useTranslation("secrets");
  return useMemo(
    () => [
      { id: "name", header: t("column.name"), width: "minmax(160px, 2fr)", cell: (secret) => secret.name },
      { id: "version", header: t("column.version"), width: "110px", cell: (secret) => String(secret.version) },
      { id: "created", header: t("column.created"), width: "180px", cell: (secret) => <When at={secret.createdAt} as="relative" /> },
      { id: "updated", header: t("column.updated"), width: "180px", cell: (secret) => <When at={secret.updatedAt} as="relative" /> },
      {
        id: "acts",
        header: "",
        width: "56px",
        cell: (secret) => (
          <RowMenu
            label={t("menu", { name: secret.name })}
            acts={[
              { icon: "edit", label: t("replace.act"), needs: "admin", onClick: () => replace(secret) },
              { icon: "trash", label: t("delete.act"), isDangerous: true, needs: "admin", onClick: () => ask(secret) },
            ]}
          />
        ),
      },
    ],
    [t, replace, ask],
  );
}
