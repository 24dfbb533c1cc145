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
      {[hold, backfill, edit].map((act) => (
        <JobAct key={act.label} act={act} />
      ))}
      <CopyJob job={job} />
      <RowMenu label={t("act.menu", { name: job.name })} acts={[clone, remove]} />
      <JobAct act={trigger} isPrimary />
    </>
  );
}

function JobAct({ act, isPrimary = false }: { act: RowAct; isPrimary?: boolean }) {
  return (
    <Act variant={isPrimary ? "filled" : "default"} leftSection={<Icon name={act.icon} size={16} />} onClick={act.onClick} why={act.why} {...(act.needs && { needs: act.needs })}>
      {act.label}
    </Act>
  );
}

/** Why there is nothing in the past of this job that could be run. */
function useNoSlots(job: JobOut): string | null {
  const { t } = useTranslation("jobs");
  const kind = kindOf(job);
  if (job.everyFrom === "finish") return t("backfill.fromFinish");
  return kind === "cron" || kind === "every" ? null : t("backfill.noSchedule");
}
