import { Badge, Button, Group, Modal, Stack, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { areAllShown, createTenant, fieldErrors, getTenants, pauseTenant, resumeTenant, type TenantOut } from "@/api";
import { Act, CheckedForm, type Column, ConfirmDialog, CopyAs, DataTable, EmptyState, ErrorView, Icon, Panel, RowMenu, When } from "@/parts";
import { DeleteTenant } from "./DeleteTenant";
import { TenantForm } from "./TenantForm";

type Asked = { act: "quotas" | "pause" | "resume" | "delete"; tenant: TenantOut };

/** All tenants: create one, change its quotas, pause, resume and delete it. */
export function Tenants() {
  const { t } = useTranslation("access");
  const [isCreating, create] = useState(false);
  const [asked, ask] = useState<Asked | null>(null);
  const columns = useColumns(ask);
  const close = () => ask(null);
  const of = (act: Asked["act"]) => (asked?.act === act ? asked.tenant : null);
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
      <TenantForm tenant={of("quotas")} onClose={close} />
      <DeleteTenant tenant={of("delete")} onClose={close} />
      <HoldTenant tenant={of("pause")} verb="pause" onClose={close} />
      <HoldTenant tenant={of("resume")} verb="resume" onClose={close} />
      <Modal opened={isCreating} onClose={() => create(false)} title={t("tenant.title")}>
        {isCreating && <Form onClose={() => create(false)} />}
      </Modal>
    </Panel>
  );
}

function HoldTenant({ tenant, verb, onClose }: { tenant: TenantOut | null; verb: "pause" | "resume"; onClose: () => void }) {
  const { t } = useTranslation("access");
  const queries = useQueryClient();
  const name = tenant?.name ?? "";
  return (
    <ConfirmDialog
      opened={tenant !== null}
      onClose={onClose}
      title={t(`${verb}.title`, { name })}
      confirm={t(`${verb}.confirm`)}
      needs="keys"
      recipe={{ method: "POST", path: `/api/v1/tenants/${name}/${verb}`, cli: `horai tenants ${verb} ${name}` }}
      onConfirm={async () => {
        await (verb === "pause" ? pauseTenant(name) : resumeTenant(name));
        await queries.invalidateQueries({ queryKey: ["tenants"] });
      }}
    >
      {t(`${verb}.explain`)}
    </ConfirmDialog>
  );
}

function useColumns(ask: (asked: Asked) => void): Column<TenantOut>[] {
  const { t } = useTranslation(["access", "tenant"]);
  return useMemo(
    () => [
      { id: "name", header: t("column.name"), cell: (tenant) => tenant.name },
      {
        id: "status",
        header: t("column.status"),
        width: "130px",
        cell: (tenant) => (
          <Badge variant="default" tt="none" fw={500}>
            {t(`tenant:status.${tenant.status}`)}
          </Badge>
        ),
      },
      { id: "weight", header: t("tenant:weight"), width: "100px", cell: (tenant) => String(tenant.weight) },
      { id: "created", header: t("column.created"), width: "200px", cell: (tenant) => <When at={tenant.createdAt} as="relative" /> },
      {
        id: "acts",
        header: "",
        width: "56px",
        cell: (tenant) => {
          const isLeaving = tenant.status === "deleting" ? t("deletion.underway") : null;
          const held = tenant.status === "active" ? t("deletion.pauseFirst") : null;
          const verb = tenant.status === "active" ? "pause" : "resume";
          return (
            <RowMenu
              label={t("menu", { name: tenant.name })}
              acts={[
                { icon: "edit", label: t("quotas.act"), needs: "keys", why: isLeaving, onClick: () => ask({ act: "quotas", tenant }) },
                {
                  icon: verb === "pause" ? "pause" : "play",
                  label: t(`${verb}.act`),
                  needs: "keys",
                  why: isLeaving,
                  onClick: () => ask({ act: verb, tenant }),
                },
                {
                  icon: "trash",
                  label: t("deletion.act"),
                  needs: "keys",
                  isDangerous: true,
                  why: isLeaving ?? (tenant.name === "default" ? t("deletion.default") : held),
                  onClick: () => ask({ act: "delete", tenant }),
                },
              ]}
            />
          );
        },
      },
    ],
    [t, ask],
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
    <CheckedForm required={{ name }} onSubmit={() => creating.mutate()}>
      {(own) => (
        <Stack gap="md">
          <TextInput
            label={t("tenant.name")}
            description={t("tenant.nameHint")}
            value={name}
            error={own["name"] ?? fieldErrors(creating.error)["name"]}
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
      )}
    </CheckedForm>
  );
}
