import { useTranslation } from "react-i18next";
import type { ReconcilerOut } from "@/api";
import type { RowAct } from "@/parts";
import type { Asked } from "./dialogs";

/** Why a reconciler cannot be changed here: code declares it. Null when it can. */
export function useWhyFixed(reconciler: ReconcilerOut): string | null {
  const { t } = useTranslation("reconcilers");
  return reconciler.declaredBy === null ? null : t("declared", { app: reconciler.declaredBy });
}

/** What can be done with a reconciler, for a list. */
export function actsOf(reconciler: ReconcilerOut, t: (key: "act.run" | "act.delete" | "schedules:pause.act" | "schedules:resume.act") => string, ask: (asked: Asked) => void): RowAct[] {
  const hold = reconciler.status === "PAUSED" ? "resume" : "pause";
  return [
    { icon: "play", label: t("act.run"), onClick: () => ask({ act: "run", reconciler }) },
    { icon: hold === "pause" ? "pause" : "right", label: t(`schedules:${hold}.act`), onClick: () => ask({ act: hold, reconciler }) },
    { icon: "trash", label: t("act.delete"), onClick: () => ask({ act: "delete", reconciler }), isDangerous: true, needs: "admin" },
  ];
}
