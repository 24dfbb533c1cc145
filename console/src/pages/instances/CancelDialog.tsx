import { Stack, Switch, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { cancelInstance } from "@/api";
import { ConfirmDialog } from "@/parts";
import { cancelling } from "./recipes";
import { useSteps } from "./Steps";

interface CancelDialogProps {
  id: string;
  isRunning: boolean;
  opened: boolean;
  onClose: () => void;
}

/** Asks before an instance is cancelled, and whether the finished steps of a durable function are undone first. */
export function CancelDialog({ id, isRunning, opened, onClose }: CancelDialogProps) {
  const { t } = useTranslation(["instances", "common"]);
  const queries = useQueryClient();
  const [isWanted, setWanted] = useState(false);
  const count = useSteps(id, opened).data?.pages[0]?.openCompensations ?? 0;
  const compensate = isWanted && count > 0;

  async function cancel(): Promise<void> {
    const compensates = (await cancelInstance(id, compensate ? { compensate } : {})).compensates ?? [];
    if (compensate) {
      notifications.show({
        message: compensates.length === 0 ? t("cancel.nothing") : t("cancel.compensates", { count: compensates.length, steps: compensates.join(", ") }),
      });
    }
    await queries.invalidateQueries({ queryKey: ["instances"] });
  }

  return (
    <ConfirmDialog
      opened={opened}
      onClose={() => {
        setWanted(false);
        onClose();
      }}
      title={t("cancel.title")}
      confirm={t("cancel.do")}
      isDangerous
      recipe={cancelling(id, compensate)}
      onConfirm={cancel}
    >
      <Stack gap="sm">
        <Text size="sm">{t(compensate ? "cancel.explainCompensation" : isRunning ? "cancel.explainRunning" : "cancel.explain")}</Text>
        {count > 0 && (
          <Switch
            label={t("cancel.compensate", { count })}
            checked={isWanted}
            onChange={(event) => setWanted(event.currentTarget.checked)}
          />
        )}
      </Stack>
    </ConfirmDialog>
  );
}
