import { useNavigate } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import type { JobOut } from "@/api";
import type { RowAct } from "@/parts";
import type { Asked } from "./dialogs";

/** What the menus of a job offer, by name. */
export function useActs(job: JobOut, onAsk: (asked: Asked) => void) {
  const { t } = useTranslation("jobs");
  const navigate = useNavigate();
  const why = isBuiltin(job) ? t("builtin") : null;
  const hold = job.status === "PAUSED" ? "resume" : "pause";
  return {
    trigger: { icon: "play", label: t("act.trigger"), onClick: () => onAsk({ act: "trigger", job }) },
    hold: { icon: hold === "pause" ? "pause" : "right", label: t(`act.${hold}`), onClick: () => onAsk({ act: hold, job }) },
    edit: {
      icon: "edit",
      needs: "admin",
      label: t("act.edit"),
      why,
      onClick: () => void navigate({ to: "/jobs/$job/edit", params: { job: job.name } }),
    },
    clone: {
      icon: "copy",
      label: t("act.clone"),
      why,
      onClick: () => void navigate({ to: "/jobs/new", search: { like: job.name } }),
    },
    remove: { icon: "trash", label: t("act.delete"), isDangerous: true, needs: "admin", why, onClick: () => onAsk({ act: "delete", job }) },
  } satisfies Record<string, RowAct>;
}

/** Horai runs it for a workflow, a refresh or a reconciler; it is changed with what it belongs to. */
export function isBuiltin(job: Pick<JobOut, "target">): boolean {
  return job.target.handler?.startsWith("horai:") ?? false;
}
