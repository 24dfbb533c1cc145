import { useTranslation } from "react-i18next";
import type { LetterOut } from "@/api";
import type { StateName } from "@/generated/states";
import classes from "./StatusBadge.module.css";

type Status = LetterOut["replayStatus"];

/** An open letter looks like what is dead, a replayed one like what goes on, a settled one like what was cancelled. */
const LOOKS: Record<Status, StateName> = { NEW: "DEAD", REPLAYED: "INIT", SUPERSEDED: "CANCELLED", DISCARDED: "CANCELLED" };

/** What has become of a letter. */
export function StatusBadge({ status }: { status: Status }) {
  const { t } = useTranslation(["dead-letters", "common"]);
  const look = LOOKS[status];
  return (
    <span className={classes.status} style={{ background: `var(--state-${look}-tint)`, color: `var(--state-${look}-text)` }}>
      {t(`status.${status}`)}
    </span>
  );
}
