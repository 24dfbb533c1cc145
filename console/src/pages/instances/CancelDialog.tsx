import { useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { cancelInstance } from "@/api";
import { ConfirmDialog } from "@/parts";

interface CancelDialogProps {
  id: string;
  isRunning: boolean;
  opened: boolean;
  onClose: () => void;
}

/** Asks before an instance is cancelled. */
export function CancelDialog({ id, isRunning, opened, onClose }: CancelDialogProps) {
  const { t } = useTranslation(["instances", "common"]);
  const queries = useQueryClient();
  return (
    <ConfirmDialog
      opened={opened}
      onClose={onClose}
      title={t("cancel.title")}
      confirm={t("cancel.do")}
      isDangerous
      recipe={{ method: "POST", path: `/api/v1/instances/${id}/cancel`, cli: `horai instances cancel ${id}` }}
      onConfirm={async () => {
        await cancelInstance(id);
        await queries.invalidateQueries({ queryKey: ["instances"] });
      }}
    >
      {t(isRunning ? "cancel.explainRunning" : "cancel.explain")}
    </ConfirmDialog>
  );
}
