import { Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type InstanceOut, putInstance, trigger } from "@/api";
import { ConfirmDialog, JsonEditor, type OnceHeaders, type Recipe, useOnce } from "@/parts";
import { quoted } from "@/parts/recipes";
import type { ActionProps } from "./Actions";

/** Runs what has ended once more, as a new instance: of its key, or without one by a trigger. */
export function Again({ instance, opened, onClose }: ActionProps) {
  const { t } = useTranslation(["instances", "common"]);
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [payload, setPayload] = useState<unknown>(instance.payload ?? undefined);
  const [isValid, setValid] = useState(true);
  const once = useOnce((wanted: unknown, headers) => start(instance, wanted, headers));

  async function run(): Promise<void> {
    if (!isValid) throw new Error(t("again.notJson"));
    const made = await once.mutateAsync(payload ?? null);
    notifications.show({ message: t("again.done") });
    await queries.invalidateQueries({ queryKey: ["instances"] });
    void navigate({ to: "/instances/$instance", params: { instance: made.id } });
  }

  return (
    <ConfirmDialog
      opened={opened}
      onClose={onClose}
      title={t("again.title")}
      confirm={t("again.do")}
      recipe={recipeOf(instance, payload)}
      onConfirm={run}
    >
      <Stack gap="sm">
        <Text size="sm">{t(instance.key ? "again.explain" : "again.explainTrigger")}</Text>
        <JsonEditor
          label={t("detail.payload")}
          value={payload}
          onChange={(value, valid) => {
            setPayload(value);
            setValid(valid);
          }}
        />
      </Stack>
    </ConfirmDialog>
  );
}

async function start(instance: InstanceOut, payload: unknown, headers: OnceHeaders): Promise<InstanceOut> {
  if (instance.key) {
    return (await putInstance(instance.job, instance.key, { again: true, payload })).instance;
  }
  return (await trigger(instance.job, { payload }, { headers })).instance;
}

function recipeOf({ job, key }: InstanceOut, payload: unknown): Recipe {
  const path = `/api/v1/jobs/${encodeURIComponent(job)}`;
  if (!key) return { method: "POST", path: `${path}/trigger`, body: { payload }, isOnce: true };
  return {
    method: "PUT",
    path: `${path}/instances/${encodeURIComponent(key)}`,
    body: { again: true, payload },
    cli: `horai instances put ${quoted(job)} ${quoted(key)} --again --payload ${quoted(JSON.stringify(payload ?? null))}`,
  };
}
