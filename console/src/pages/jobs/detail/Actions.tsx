import { useTranslation } from "react-i18next";
import type { JobOut } from "@/api";
import { Act, Icon, type RowAct, RowMenu } from "@/parts";
import type { Asked } from "../dialogs";
import { kindOf } from "../schedule";
import { useActs } from "../useActs";
import { CopyJob } from "./CopyJob";

interface ActionsProps {
  job: JobOut;
  onAsk: (asked: Asked) => void;
  onBackfill: () => void;
}

/** Everything that can be done with a job; what cannot now says why. */
export function Actions({ job, onAsk, onBackfill }: ActionsProps) {
  const { t } = useTranslation("jobs");
  const { trigger, hold, edit, clone, remove } = useActs(job, onAsk);
  const backfill: RowAct = { icon: "backfill", label: t("act.backfill"), onClick: onBackfill, why: useNoSlots(job) };
  return (
    <>
      {[trigger, hold, backfill, edit].map((act: RowAct) => (
        <Act
          key={act.label}
          variant={act === trigger ? "filled" : "default"}
          leftSection={<Icon name={act.icon} size={16} />}
          onClick={act.onClick}
          why={act.why}
          {...(act.needs && { needs: act.needs })}
        >
          {act.label}
        </Act>
      ))}
      <CopyJob job={job} />
      <RowMenu label={t("act.menu", { name: job.name })} acts={[clone, remove]} />
    </>
  );
}

/** Why there is nothing in the past of this job that could be run. */
function useNoSlots(job: JobOut): string | null {
  const { t } = useTranslation("jobs");
  const kind = kindOf(job);
  if (job.everyFrom === "finish") return t("backfill.fromFinish");
  return kind === "cron" || kind === "every" ? null : t("backfill.noSchedule");
}
