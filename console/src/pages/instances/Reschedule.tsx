import { Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { fieldErrors, putInstance } from "@/api";
import { ConfirmDialog, InstantInput } from "@/parts";
import { quoted } from "@/parts/recipes";
import type { ActionProps } from "./Actions";

/** Moves the instance of a key to another time; what runs is replaced. */
export function Reschedule({ instance, opened, onClose }: ActionProps) {
  const { t } = useTranslation(["instances", "common"]);
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [at, setAt] = useState(instance.executeTime);
  const [fault, setFault] = useState<string | undefined>();
  const key = instance.key ?? "";

  async function move(): Promise<void> {
    setFault(undefined);
    try {
      const put = await putInstance(instance.job, key, { executeTime: at });
      notifications.show({ message: t(`decision.${put.decision}`) });
      await queries.invalidateQueries({ queryKey: ["instances"] });
      if (put.instance.id !== instance.id) {
        void navigate({ to: "/instances/$instance", params: { instance: put.instance.id } });
      }
    } catch (error) {
      setFault(fieldErrors(error)["executeTime"]);
      throw error;
    }
  }

  return (
    <ConfirmDialog
      opened={opened}
      onClose={onClose}
      title={t("reschedule.title")}
      confirm={t("reschedule.do")}
      recipe={{
        method: "PUT",
        path: `/api/v1/jobs/${encodeURIComponent(instance.job)}/instances/${encodeURIComponent(key)}`,
        body: { executeTime: at },
        cli: `horai instances put ${quoted(instance.job)} ${quoted(key)} --at ${at}`,
      }}
      onConfirm={move}
    >
      <Stack gap="sm">
        <Text size="sm">{t(instance.state === "RUNNING" ? "reschedule.explainRunning" : "reschedule.explain")}</Text>
        <InstantInput label={t("reschedule.at")} value={at} onChange={setAt} required error={fault} data-autofocus />
      </Stack>
    </ConfirmDialog>
  );
}
