import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { deleteWorkflow, pauseWorkflow, resumeWorkflow, type WorkflowOut } from "@/api";
import { ConfirmDialog, HoldDialog } from "@/parts";
import { TriggerDialog } from "./TriggerDialog";

/** What somebody wants to do with a workflow, to be confirmed. */
export interface Asked {
  act: "pause" | "resume" | "trigger" | "delete";
  workflow: WorkflowOut;
}

export function pathOf(name: string, ...rest: string[]): string {
  return ["/api/v1/workflows", name, ...rest].map((part, place) => (place === 0 ? part : encodeURIComponent(part))).join("/");
}

/** The questions that the actions of a workflow ask; one at a time. */
export function Dialogs({ asked, onClose }: { asked: Asked | null; onClose: () => void }) {
  const { t } = useTranslation("workflows");
  if (!asked) return null;
  const { act, workflow } = asked;
  if (act === "trigger") return <TriggerDialog workflow={workflow} onClose={onClose} />;
  if (act === "delete") return <DeleteDialog workflow={workflow} onClose={onClose} />;
  const send = { pause: pauseWorkflow, resume: resumeWorkflow }[act];
  return (
    <HoldDialog
      act={act}
      name={workflow.name}
      explain={t(`${act}.explain`)}
      send={(note) => send(workflow.id, note)}
      recipe={{ method: "POST", path: pathOf(workflow.name, act), cli: `horai workflows ${act} ${workflow.name}` }}
      topic="workflows"
      onClose={onClose}
    />
  );
}

function DeleteDialog({ workflow, onClose }: { workflow: WorkflowOut; onClose: () => void }) {
  const { t } = useTranslation("workflows");
  const queries = useQueryClient();
  const navigate = useNavigate();
  return (
    <ConfirmDialog
      opened
      isDangerous
      onClose={onClose}
      title={t("delete.title", { name: workflow.name })}
      confirm={t("act.delete")}
      recipe={{ method: "DELETE", path: pathOf(workflow.name), cli: `horai workflows delete ${workflow.name}` }}
      onConfirm={async () => {
        await deleteWorkflow(workflow.id);
        await navigate({ to: "/workflows" });
        await queries.invalidateQueries({ queryKey: ["workflows"] });
      }}
    >
      {t("delete.explain")} {workflow.declaredBy && t("declared", { app: workflow.declaredBy })}
    </ConfirmDialog>
  );
}
