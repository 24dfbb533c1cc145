import { useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { deleteJob, type JobOut, pauseJob, resumeJob } from "@/api";
import { ConfirmDialog, HoldDialog } from "@/parts";
import { deletion, hold } from "./recipes";
import { TriggerDialog } from "./TriggerDialog";

/** What somebody wants to do with a job, to be confirmed. */
export interface Asked {
  act: "pause" | "resume" | "trigger" | "delete";
  job: JobOut;
}

interface DialogsProps {
  asked: Asked | null;
  onClose: () => void;
  onDeleted?: () => void;
}

/** The questions that the actions of a job ask; one at a time. */
export function Dialogs({ asked, onClose, onDeleted }: DialogsProps) {
  if (!asked) return null;
  const { act, job } = asked;
  if (act === "trigger") return <TriggerDialog job={job} onClose={onClose} />;
  if (act === "delete") return <DeleteDialog job={job} onClose={onClose} onDeleted={onDeleted} />;
  return <HoldJob act={act} job={job} onClose={onClose} />;
}

/** Asks before a job is paused or resumed. */
export function HoldJob({ act, job, onClose }: { act: "pause" | "resume"; job: Pick<JobOut, "id" | "name">; onClose: () => void }) {
  const { t } = useTranslation("jobs");
  return (
    <HoldDialog
      act={act}
      name={job.name}
      explain={t(`${act}.explain`)}
      send={(note) => ({ pause: pauseJob, resume: resumeJob })[act](job.id, note)}
      recipe={hold(job, act)}
      topic="jobs"
      onClose={onClose}
    />
  );
}

function DeleteDialog({ job, onClose, onDeleted }: { job: JobOut; onClose: () => void; onDeleted: (() => void) | undefined }) {
  const { t } = useTranslation("jobs");
  const queries = useQueryClient();
  return (
    <ConfirmDialog
      opened
      isDangerous
      onClose={onClose}
      title={t("delete.title", { name: job.name })}
      confirm={t("act.delete")}
      recipe={deletion(job)}
      onConfirm={async () => {
        await deleteJob(job.id);
        onDeleted?.();
        await queries.invalidateQueries({ queryKey: ["jobs"], refetchType: "none" });
      }}
    >
      {t("delete.explain")} {job.declaredBy && t("declared", { app: job.declaredBy })}
    </ConfirmDialog>
  );
}
