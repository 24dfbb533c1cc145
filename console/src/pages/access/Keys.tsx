import { Badge, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { getKeys, type KeyOut, revokeKey } from "@/api";
import { type Column, ConfirmDialog, DataTable, EmptyState, RowMenu, When } from "@/parts";

type KeyState = "active" | "expired" | "revoked";

function stateOf(key: KeyOut): KeyState {
  if (key.revokedAt) return "revoked";
  return key.expiresAt && new Date(key.expiresAt) <= new Date() ? "expired" : "active";
}

/** The keys of the tenant; for the platform, those of every tenant. */
export function Keys() {
  const { t } = useTranslation("access");
  const queries = useQueryClient();
  const [revoked, ask] = useState<KeyOut | null>(null);
  const columns = useColumns(ask);
  return (
    <>
      <DataTable<KeyOut>
        label={t("keys")}
        queryKey={["keys", "list"]}
        fetchPage={(cursor, signal) => getKeys({ limit: 100, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(key) => key.id}
        empty={
          <EmptyState icon="lock" title={t("empty.title")} command="horai keys create --role platform-admin">
            {t("empty.explain")}
          </EmptyState>
        }
      />
      <ConfirmDialog
        opened={revoked !== null}
        onClose={() => ask(null)}
        title={t("revoke.title", { name: revoked?.name })}
        confirm={t("revoke.confirm")}
        needs="keys"
        isDangerous
        recipe={{ method: "DELETE", path: `/api/v1/keys/${revoked?.id ?? ""}`, cli: `horai keys revoke ${revoked?.id ?? ""}` }}
        onConfirm={async () => {
          await revokeKey(revoked?.id ?? "");
          await queries.invalidateQueries({ queryKey: ["keys"] });
        }}
      >
        {t("revoke.explain")}
      </ConfirmDialog>
    </>
  );
}

function useColumns(ask: (key: KeyOut) => void): Column<KeyOut>[] {
  const { t } = useTranslation("access");
  return useMemo(
    () => [
      {
        id: "name",
        header: t("column.name"),
        width: "minmax(160px, 1.5fr)",
        cell: (key) => (
          <>
            <Text size="sm" fw={600} truncate>
              {key.name}
            </Text>
            <Text size="xs" c="dimmed" ff="monospace">
              {key.id}
            </Text>
          </>
        ),
      },
      { id: "role", header: t("column.role"), width: "150px", cell: (key) => key.role },
      { id: "tenant", header: t("column.tenant"), cell: (key) => key.tenant ?? t("platform") },
      {
        id: "status",
        header: t("column.status"),
        width: "110px",
        cell: (key) => (
          <Badge variant="default" tt="none" fw={500}>
            {t(`status.${stateOf(key)}`)}
          </Badge>
        ),
      },
      { id: "created", header: t("column.created"), width: "150px", cell: (key) => <When at={key.createdAt} as="relative" /> },
      { id: "expires", header: t("column.expires"), width: "150px", cell: (key) => (key.expiresAt ? <When at={key.expiresAt} as="relative" /> : t("never")) },
      { id: "used", header: t("column.used"), width: "150px", cell: (key) => (key.lastUsedAt ? <When at={key.lastUsedAt} as="relative" /> : t("never")) },
      {
        id: "acts",
        header: "",
        width: "56px",
        cell: (key) =>
          key.revokedAt ? null : (
            <RowMenu
              label={t("menu", { name: key.name })}
              acts={[{ icon: "trash", label: t("revoke.act"), isDangerous: true, needs: "keys", onClick: () => ask(key) }]}
            />
          ),
      },
    ],
    [t, ask],
  );
}
