import { Modal, Select, TextInput } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { createGroupMapping, type GroupMappingIn } from "@/api";
import { SavingForm, useDraft } from "@/parts";
import { quoted } from "@/parts/recipes";

const ROLES = ["viewer", "operator", "admin", "platform-admin"] as const;

/** Gives a group of the identity provider a role. */
export function GroupForm({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const { t } = useTranslation("access");
  return (
    <Modal opened={opened} onClose={onClose} title={t("group.title")}>
      {opened && <Form onClose={onClose} />}
    </Modal>
  );
}

function Form({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation("access");
  const kept = useDraft<GroupMappingIn>("new group", { group: "", role: "viewer", tenant: "" });
  const { draft } = kept;
  const change = (part: Partial<GroupMappingIn>) => kept.change((before) => ({ ...before, ...part }));
  const body: GroupMappingIn = { group: draft.group, role: draft.role, ...(draft.tenant && draft.role !== "platform-admin" && { tenant: draft.tenant }) };
  const cli = ["horai groups create", quoted(draft.group), "--role", draft.role, ...(body.tenant ? ["--tenant", quoted(body.tenant)] : [])].join(" ");
  return (
    <SavingForm
      fields={["group", "role", "tenant"]}
      topic="groups"
      needs="keys"
      kept={kept}
      required={{ group: draft.group, ...(draft.role !== "platform-admin" && { tenant: draft.tenant }) }}
      recipe={{ method: "POST", path: "/api/v1/groups", body, cli }}
      confirm={t("group.confirm")}
      save={() => createGroupMapping(body)}
      onClose={onClose}
    >
      {(faults) => (
        <>
          <TextInput
            label={t("group.name")}
            description={t("group.nameHint")}
            maxLength={256}
            value={draft.group}
            error={faults["group"]}
            onChange={(event) => change({ group: event.currentTarget.value })}
            data-autofocus
            required
          />
          <Select
            label={t("create.role")}
            data={[...ROLES]}
            value={draft.role}
            allowDeselect={false}
            error={faults["role"]}
            onChange={(role) => role && change({ role: role as GroupMappingIn["role"] })}
          />
          {draft.role !== "platform-admin" && (
            <TextInput label={t("create.tenant")} value={draft.tenant ?? ""} error={faults["tenant"]} onChange={(event) => change({ tenant: event.currentTarget.value })} required />
          )}
        </>
      )}
    </SavingForm>
  );
}
