import { Autocomplete, Button, Group, Modal, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { fieldErrors, signalInstance } from "@/api";
import { Act, CopyAs, ErrorView, JsonEditor, useOnce } from "@/parts";
import { signalling } from "./recipes";

interface SignalDialogProps {
  id: string;
  /** The signals that the instance waits for: the first one is preset. */
  waits: readonly string[];
  opened: boolean;
  onClose: () => void;
}

/** Sends a signal to a durable function. A signal that nothing waits for is kept for a later wait. */
export function SignalDialog(props: SignalDialogProps) {
  const { t } = useTranslation("instances");
  return (
    <Modal opened={props.opened} onClose={props.onClose} title={t("signal.title")} size="lg">
      {props.opened && <Draft {...props} />}
    </Modal>
  );
}

interface Signal {
  name: string;
  body: { payload?: unknown };
}

function Draft({ id, waits, onClose }: SignalDialogProps) {
  const { t } = useTranslation(["instances", "common"]);
  const queries = useQueryClient();
  const [typed, setName] = useState(waits[0] ?? "");
  const [payload, setPayload] = useState<unknown>();
  const [isJson, setIsJson] = useState(true);
  const once = useOnce((signal: Signal, headers) => signalInstance(id, signal.name, signal.body, { headers }));
  const name = typed.trim();

  const send = (): void =>
    once.mutate(
      { name, body: payload === undefined ? {} : { payload } },
      {
        onSuccess: (sent) => {
          notifications.show({ message: t(sent.woken ? "signal.woken" : "signal.stored", { name }) });
          void queries.invalidateQueries({ queryKey: ["instances"] });
          onClose();
        },
      },
    );

  return (
    <Stack gap="md">
      <Text size="sm">{t("signal.explain")}</Text>
      <Autocomplete
        label={t("signal.name")}
        description={t("signal.nameHint")}
        data={[...waits]}
        value={typed}
        onChange={setName}
        maxLength={128}
        required
        openOnFocus={false}
        data-autofocus
      />
      <JsonEditor
        label={t("detail.payload")}
        description={t("signal.payloadHint")}
        value={payload}
        error={fieldErrors(once.error)["payload"]}
        onChange={(value, isValid) => {
          setPayload(value);
          setIsJson(isValid);
        }}
      />
      <ErrorView error={once.error} />
      <Group justify="space-between">
        <CopyAs recipe={signalling(id, name, payload)} />
        <Group gap="xs">
          <Button variant="default" onClick={onClose}>
            {t("common:dialog.cancel")}
          </Button>
          <Act onClick={send} loading={once.isPending} why={name === "" ? t("signal.noName") : isJson ? null : t("again.notJson")}>
            {t("signal.open")}
          </Act>
        </Group>
      </Group>
    </Stack>
  );
}
