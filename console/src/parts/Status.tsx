import { useTranslation } from "react-i18next";
import { Icon } from "./Icon";
import classes from "./Status.module.css";

/** Whether something that fires by itself goes on or is held. */
export function Status({ status }: { status: "ACTIVE" | "PAUSED" }) {
  const { t } = useTranslation("schedules");
  return (
    <span className={classes.status} data-status={status}>
      <Icon name={status === "PAUSED" ? "pause" : "play"} size={14} />
      {t(`status.${status}`)}
    </span>
  );
}
