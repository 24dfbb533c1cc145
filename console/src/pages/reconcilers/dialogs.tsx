import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { deleteReconciler, pauseReconciler, type ReconcilerOut, resumeReconciler, runReconciler } from "@/api";
import { ConfirmDialog, HoldDialog, useOnce } from "@/parts";

/** What somebody wants to do with a reconciler, to be confirmed. */
export interface Asked {
  act: "run" | "pause" | "resume" | "delete";
  reconciler: ReconcilerOut;
}

export function pathOf(name: string, rest?: string): string {
  return `/api/v1/reconcilers/${encodeURIComponent(name)}${rest ? `/${rest}` : ""}`;
}

/** The questions that the actions of a reconciler ask; one at a time. */
export function Dialogs({ asked, onClose }: { asked: Asked | null; onClose: () => void }) {
  const { t } = useTranslation("reconcilers");
  if (!asked) return null;
  const { act, reconciler } = asked;
  if (act === "run") return <RunDialog reconciler={reconciler} onClose={onClose} />;
  if (act === "delete") return <DeleteDialog reconciler={reconciler} onClose={onClose} />;
  const send = { pause: pauseReconciler, resume: resumeReconciler }[act];
  return (
    <HoldDialog
      act={act}
      name={reconciler.name}
      explain={t(`${act}.explain`)}
      send={(note) => send(reconciler.id, note)}
      recipe={{ method: "POST", path: pathOf(reconciler.name, act), cli: `horai reconcilers ${act} ${reconciler.name}` }}
      topic="reconcilers"
      onClose={onClose}
    />
  );
}

interface DialogProps {
  reconciler: ReconcilerOut;
  onClose: () => void;
}

function RunDialog({ reconciler, onClose }: DialogProps) {
  const { t } = useTranslation("reconcilers");
  const queries = useQueryClient();
  const once = useOnce((_: object, headers) => runReconciler(reconciler.id, { headers }));
  return (
    <ConfirmDialog
      opened
      onClose={onClose}
      title={t("run.title", { name: reconciler.name })}
      confirm={t("act.run")}
      recipe={{ method: "POST", path: pathOf(reconciler.name, "run"), isOnce: true, cli: `horai reconcilers run ${reconciler.name}` }}
      onConfirm={async () => {
        await once.mutateAsync({});
        await queries.invalidateQueries({ queryKey: ["reconcilers"] });
      }}
    >
      {t(reconciler.status === "PAUSED" ? "run.paused" : "run.explain", { job: reconciler.job })}
    </ConfirmDialog>
  );
}

function DeleteDialog({ reconciler, onClose }: DialogProps) {
  const { t } = useTranslation("reconcilers");
  const queries = useQueryClient();
  const navigate = useNavigate();
  return (
    <ConfirmDialog
      opened
      isDangerous
      onClose={onClose}
      title={t("delete.title", { name: reconciler.name })}
      confirm={t("act.delete")}
      recipe={{ method: "DELETE", path: pathOf(reconciler.name), cli: `horai reconcilers delete ${reconciler.name}` }}
      onConfirm={async () => {
        await deleteReconciler(reconciler.id);
        await navigate({ to: "/reconcilers" });
        await queries.invalidateQueries({ queryKey: ["reconcilers"] });
      }}
    >
      {t("delete.explain")}
    </ConfirmDialog>
  );
}
