import { ActionIcon, Menu } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import type { JobOut } from "@/api";
import { Act, Icon } from "@/parts";
import type { Asked } from "../dialogs";
import { MenuAct } from "../MenuAct";
import { kindOf } from "../schedule";
import { CopyJob } from "./CopyJob";

interface ActionsProps {
  job: JobOut;
  onAsk: (act: Asked["act"]) => void;
  onBackfill: () => void;
}

/** Everything that can be done with a job; what cannot now says why. */
export function Actions({ job, onAsk, onBackfill }: ActionsProps) {
  const { t } = useTranslation("jobs");
  const navigate = useNavigate();
  const isPaused = job.status === "PAUSED";
  return (
    <>
      <Act leftSection={<Icon name="play" size={16} />} onClick={() => onAsk("trigger")}>
        {t("act.trigger")}
      </Act>
      <Act
        variant="default"
        leftSection={<Icon name={isPaused ? "right" : "pause"} size={16} />}
        onClick={() => onAsk(isPaused ? "resume" : "pause")}
      >
        {t(isPaused ? "act.resume" : "act.pause")}
      </Act>
      <Act variant="default" leftSection={<Icon name="backfill" size={16} />} onClick={onBackfill} why={useNoSlots(job)}>
        {t("act.backfill")}
      </Act>
      <Act
        variant="default"
        leftSection={<Icon name="edit" size={16} />}
        onClick={() => void navigate({ to: "/jobs/$job/edit", params: { job: job.name } })}
      >
        {t("act.edit")}
      </Act>
      <CopyJob job={job} />
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="default" size={36} aria-label={t("act.menu", { name: job.name })}>
            <Icon name="more" />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <MenuAct icon="copy" onClick={() => void navigate({ to: "/jobs/new", search: { like: job.name } })}>
            {t("act.clone")}
          </MenuAct>
          <MenuAct icon="trash" isDangerous onClick={() => onAsk("delete")}>
            {t("act.delete")}
          </MenuAct>
        </Menu.Dropdown>
      </Menu>
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
