import { Button, Group, Modal, Stack, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { areAllShown, type EntityIn, fieldErrors, type JobOut, putEntity } from "@/api";
import { Act, CopyAs, ErrorView, JsonEditor } from "@/parts";
import { quoted } from "@/parts/recipes";
import { entityPath } from "./paths";

/** Adds an entity to a job's round; of one that is known it changes the payload. */
export function AddEntity({ job, onClose }: { job: JobOut; onClose: () => void }) {
  const { t } = useTranslation(["refresh", "common"]);
  const queries = useQueryClient();
  const [key, setKey] = useState("");
  const [payload, setPayload] = useState<unknown>(undefined);
  const [isJson, setIsJson] = useState(true);
  const body: EntityIn = payload === undefined ? {} : { payload };
  const adding = useMutation({
    mutationFn: () => putEntity(job.id, key, body),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["refresh"] });
      onClose();
    },
  });
  const errors = fieldErrors(adding.error);
  const why = key === "" ? t("add.noKey") : isJson ? null : t("add.notJson");
  const cli = `horai entities add ${job.name} ${quoted(key)}${payload === undefined ? "" : ` --payload ${quoted(JSON.stringify(payload))}`}`;
  return (
    <Modal opened onClose={onClose} title={t("add.title")} size="lg">
      <Stack gap="md">
        <TextInput label={t("column.key")} value={key} onChange={(event) => setKey(event.currentTarget.value)} error={errors["key"]} data-autofocus spellCheck={false} />
        <JsonEditor
          label={t("add.payload")}
          description={t("add.payloadHint")}
          value={payload}
          error={errors["payload"]}
          onChange={(value, isValid) => {
            setPayload(value);
            setIsJson(isValid);
          }}
        />
        {!areAllShown(adding.error, ["key", "payload"]) && <ErrorView error={adding.error} />}
        <Group justify="space-between">
          <CopyAs recipe={{ method: "PUT", path: entityPath(job.name, key), body, cli }} />
          <Group gap="xs">
            <Button variant="default" onClick={onClose}>
              {t("common:dialog.cancel")}
            </Button>
            <Act why={why} loading={adding.isPending} onClick={() => adding.mutate()}>
              {t("add.act")}
            </Act>
          </Group>
        </Group>
      </Stack>
    </Modal>
  );
}
