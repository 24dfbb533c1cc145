import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { areAllShown, type AssetUpdateIn, fieldErrors, updateAsset } from "@/api";
import { Act, CopyAs, ErrorView, InstantInput, JsonEditor, useOnce } from "@/parts";
import { bodyOf, updating } from "./recipes";

/** Records an update of an asset from outside, once for each draft. */
export function UpdateDialog({ name, onClose }: { name: string; onClose: () => void }) {
  const { t } = useTranslation(["assets", "common"]);
  const queries = useQueryClient();
  const [metadata, setMetadata] = useState<unknown>(undefined);
  const [isJson, setIsJson] = useState(true);
  const [interval, setInterval] = useState({ start: "", end: "" });
  const once = useOnce((body: AssetUpdateIn, headers) => updateAsset(name, body, { headers }));
  const body = bodyOf(metadata, interval);
  const isHalf = Boolean(interval.start) !== Boolean(interval.end);
  const why = isJson ? (isHalf ? t("update.halfInterval") : null) : t("update.notJson");
  const send = (): void =>
    once.mutate(body, {
      onSuccess: async () => {
        await Promise.all(["assets", "instances"].map((topic) => queries.invalidateQueries({ queryKey: [topic] })));
        onClose();
      },
    });
  return (
    <Modal opened onClose={onClose} title={t("update.title", { name })} size="lg">
      <Stack gap="md">
        <Text size="sm">{t("update.explain")}</Text>
        <JsonEditor
          label={t("update.metadata")}
          description={t("update.metadataHint")}
          value={metadata}
          error={fieldErrors(once.error)["metadata"]}
          onChange={(value, isValid) => {
            setMetadata(value);
            setIsJson(isValid);
          }}
          data-autofocus
        />
        <Group gap="md" grow align="flex-start">
          <InstantInput label={t("update.start")} value={interval.start} onChange={(start) => setInterval({ ...interval, start })} />
          <InstantInput label={t("update.end")} value={interval.end} error={fieldErrors(once.error)["interval"]} onChange={(end) => setInterval({ ...interval, end })} />
        </Group>
        {!areAllShown(once.error, ["metadata", "interval"]) && <ErrorView error={once.error} />}
        <Group justify="space-between">
          <CopyAs recipe={updating(name, body)} />
          <Group gap="xs">
            <Button variant="default" onClick={onClose}>
              {t("common:dialog.cancel")}
            </Button>
            <Act onClick={send} loading={once.isPending} why={why}>
              {t("update.act")}
            </Act>
          </Group>
        </Group>
      </Stack>
    </Modal>
  );
}
