import { useTranslation } from "react-i18next";
import type { JobOut } from "@/api";
import { Icon } from "@/parts";
import classes from "./Status.module.css";

/** Whether a job goes on or is held. */
export function Status({ status }: { status: JobOut["status"] }) {
  const { t } = useTranslation("jobs");
  return (
    <span className={classes.status} data-status={status}>
      <Icon name={status === "PAUSED" ? "pause" : "play"} size={14} />
      {t(`status.${status}`)}
    </span>
  );
}
