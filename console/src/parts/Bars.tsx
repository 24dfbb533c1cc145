import { useTranslation } from "react-i18next";
import type { StateName } from "@/generated/states";
import classes from "./Bars.module.css";

interface Bar {
  id: string;
  state: StateName;
  /** Height, where one is longer than another. */
  durationMs?: number | null;
}

/** The last instances of a job, oldest at the left, each as a bar in the colour of its state. */
export function Bars({ bars, room = 20 }: { bars: readonly Bar[]; room?: number }) {
  const { t } = useTranslation();
  const longest = Math.max(1, ...bars.map((bar) => bar.durationMs ?? 0));
  const told = bars.map((bar) => t(`state.${bar.state}`)).join(", ");
  return (
    <span className={classes.bars} role="img" aria-label={told || t("bars.none")}>
      {Array.from({ length: Math.max(0, room - bars.length) }, (_, place) => (
        <i key={`empty-${place}`} className={classes.empty} />
      ))}
      {bars.map((bar) => (
        <i key={bar.id} style={{ background: `var(--state-${bar.state}-solid)`, height: heightOf(bar, longest) }} />
      ))}
    </span>
  );
}

function heightOf(bar: Bar, longest: number): string {
  return bar.durationMs ? `${Math.round(40 + (60 * bar.durationMs) / longest)}%` : "100%";
}
