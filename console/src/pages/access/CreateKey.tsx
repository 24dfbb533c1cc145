import { Alert, Button, Group, Modal, Select, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { areAllShown, createKey, fieldErrors, type KeyIn, type NewKeyOut } from "@/api";
import { seesPlatform, SESSION, useSession } from "@/live";
import { Act, CheckedForm, Command, CopyAs, ErrorView, useDraft } from "@/parts";
import { Restored } from "@/parts/Restored";

const ROLES = ["viewer", "operator", "admin", "worker"] as const;
/** The fields of a new key. The server makes the key itself, which no draft holds. */
type KeyDraft = KeyIn & { addresses: string };

const FIELDS = ["name", "role", "tenant", "networks"];

/** Creates a key and shows it, this once. */
export function CreateKey({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const { t } = useTranslation("access");
  const [made, show] = useState<NewKeyOut | null>(null);
  const queries = useQueryClient();
  async function close(): Promise<void> {
    show(null);
    onClose();
    await queries.invalidateQueries({ queryKey: ["keys"] });
    await queries.invalidateQueries({ queryKey: SESSION });
  }
  return (
    <Modal opened={opened} onClose={() => void close()} title={t(made ? "shown.title" : "create.title")} size="lg" closeOnClickOutside={!made}>
      {opened && (made ? <Shown made={made} onDone={() => void close()} /> : <Form onMade={show} onCancel={onClose} />)}
    </Modal>
  );
}

function Form({ onMade, onCancel }: { onMade: (made: NewKeyOut) => void; onCancel: () => void }) {
  const { t } = useTranslation(["access", "common"]);
  const session = useSession().data;
  const isPlatform = seesPlatform(session);
  const kept = useDraft<KeyDraft>("new key", { role: isPlatform ? "platform-admin" : "operator", addresses: "" });
  const { addresses: networks, ...wish } = kept.draft;
  const change = (part: Partial<KeyDraft>) => kept.change((before) => ({ ...before, ...part }));
  const listed = networks.split(",").map((text) => text.trim()).filter((text) => text !== "");
  const body: KeyIn = {
    role: wish.role,
    ...(wish.name && { name: wish.name }),
    ...(wish.tenant && wish.role !== "platform-admin" && { tenant: wish.tenant }),
    ...(listed.length > 0 && { networks: listed }),
  };
  const creating = useMutation({
    mutationFn: () => createKey(body),
    onSuccess: (made) => {
      kept.forget();
      onMade(made);
    },
  });
  const faults = fieldErrors(creating.error);
  const cli = ["horai keys create --role", wish.role, ...(body.tenant ? ["--tenant", body.tenant] : [])].join(" ");
  return (
    <CheckedForm onSubmit={() => creating.mutate()}>
      {() => (
        <Stack gap="md">
          <Restored draft={kept} />
          {session?.keyless && <Alert color="orange">{t("create.first")}</Alert>}
          <TextInput label={t("create.name")} maxLength={200} value={wish.name ?? ""} error={faults["name"]} onChange={(event) => change({ name: event.currentTarget.value })} data-autofocus />
          <Select
            label={t("create.role")}
            data={isPlatform ? [...ROLES, "platform-admin"] : [...ROLES]}
            value={wish.role}
            allowDeselect={false}
            error={faults["role"]}
            onChange={(role) => role && change({ role: role as KeyIn["role"] })}
          />
          {isPlatform && wish.role !== "platform-admin" && (
            <TextInput label={t("create.tenant")} placeholder="default" value={wish.tenant ?? ""} error={faults["tenant"]} onChange={(event) => change({ tenant: event.currentTarget.value })} />
          )}
          <TextInput label={t("create.networks")} description={t("create.networksHint")} value={networks} error={faults["networks"] ?? faults["networks.0"]} onChange={(event) => change({ addresses: event.currentTarget.value })} />
          {!areAllShown(creating.error, FIELDS) && <ErrorView error={creating.error} />}
          <Group justify="space-between">
            <CopyAs recipe={{ method: "POST", path: "/api/v1/keys", body, cli }} />
            <Group gap="xs">
              <Button variant="default" onClick={onCancel}>
                {t("common:dialog.cancel")}
              </Button>
              <Act needs="keys" type="submit" loading={creating.isPending}>
                {t("create.confirm")}
              </Act>
            </Group>
          </Group>
        </Stack>
      )}
    </CheckedForm>
  );
}

function Shown({ made, onDone }: { made: NewKeyOut; onDone: () => void }) {
  const { t } = useTranslation("access");
  return (
    <Stack gap="md">
      <Command text={made.key} />
      <Text size="sm" c="dimmed">
        {t("shown.explain")}
      </Text>
      <Group justify="flex-end">
        <Button onClick={onDone}>{t("shown.done")}</Button>
      </Group>
    </Stack>
  );
}
