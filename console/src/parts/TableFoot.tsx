import { Button, Loader } from "@mantine/core";
import { useTranslation } from "react-i18next";
import classes from "./DataTable.module.css";
import { Icon } from "./Icon";
import { type Counted, totalText } from "./total";

/** Why a list does not move, if it does not. */
export type Stillness = "scrolled" | "paused" | "selected" | "pointed" | null;

interface TableFootProps {
  count: number;
  /** Whether rows that match are not loaded. */
  hasMore: boolean;
  /** The number of rows that match, if it is known. */
  total: Counted | null;
  isPending: boolean;
  isLoading: boolean;
  stillness: Stillness;
  fresh: number;
  isMore: boolean;
  onNewest: () => void;
  isPaused: boolean;
  onPause: (isPaused: boolean) => void;
}

/** The number of rows, why the list does not move, and the way to the newest. */
export function TableFoot({ count, hasMore, total, stillness, fresh, ...props }: TableFootProps) {
  const { t, i18n } = useTranslation();
  const isKnown = hasMore && total !== null && total.count >= count;
  return (
    <div className={classes.foot}>
      {props.isLoading && <Loader size={14} />}
      <span aria-live="polite">{!props.isPending && (isKnown ? t("table.of", { count, total: totalText(total, i18n.language) }) : t(hasMore ? "table.more" : "table.all", { count }))}</span>
      {stillness && <span>{t(`table.still.${stillness}`)}</span>}
      {stillness && (fresh > 0 || stillness === "scrolled") && (
        <Button variant="subtle" size="compact-xs" onClick={props.onNewest}>
          {fresh > 0 ? t(props.isMore ? "table.freshMore" : "table.fresh", { count: fresh }) : t("table.newest")}
        </Button>
      )}
      <Button
        className={classes.pause!}
        variant="subtle"
        color="gray"
        size="compact-xs"
        aria-pressed={props.isPaused}
        leftSection={<Icon name={props.isPaused ? "play" : "pause"} size={12} />}
        onClick={() => props.onPause(!props.isPaused)}
      >
        {t(props.isPaused ? "table.resume" : "table.pause")}
      </Button>
    </div>
  );
}
