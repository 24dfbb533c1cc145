import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { cancelRun, type RunOut } from "@/api";
import { Act, ConfirmDialog, Icon } from "@/parts";
import { pathOf } from "./dialogs";

/** Gives a run up that nobody wants any more. */
export function CancelRun({ run }: { run: RunOut }) {
  const { t } = useTranslation("workflows");
  const queries = useQueryClient();
  const [isAsked, ask] = useState(false);
  const isOver = run.state !== "RUNNING" && run.state !== "BLOCKED";
  const why = run.state === "PENDING" ? t("cancel.pending") : isOver ? t("cancel.over") : null;
  return (
    <>
      <Act variant="default" why={why} onClick={() => ask(true)} leftSection={<Icon name="close" size={16} />}>
        {t("act.cancel")}
      </Act>
      <ConfirmDialog
        opened={isAsked}
        isDangerous
        onClose={() => ask(false)}
        title={t("cancel.title", { id: run.id })}
        confirm={t("act.cancel")}
        recipe={{ method: "POST", path: pathOf(run.workflow, "runs", run.id, "cancel"), cli: `horai workflows cancel ${run.workflow} ${run.id}` }}
        onConfirm={async () => {
          await cancelRun(run.workflowId, run.id);
          await queries.invalidateQueries({ queryKey: ["workflows"] });
        }}
      >
        {t("cancel.explain")}
      </ConfirmDialog>
    </>
  );
}
