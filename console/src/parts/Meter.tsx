import { useTranslation } from "react-i18next";
import classes from "./Meter.module.css";

/** How many are taken of how many there are; without a bound only the number. */
export function Meter({ used, of, label }: { used: number | null; of: number | null; label: string }) {
  const { i18n } = useTranslation();
  const number = new Intl.NumberFormat(i18n.language);
  const taken = used === null ? "–" : number.format(used);
  if (of === null) return <span className="numbers">{taken}</span>;
  const share = Math.min(1, (used ?? 0) / Math.max(1, of));
  return (
    <span className={classes.meter}>
      <span className="numbers">{`${taken} / ${number.format(of)}`}</span>
      <span className={classes.track} role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={of} aria-valuenow={used ?? 0}>
        <span className={classes.fill} style={{ display: "block", width: `${share * 100}%` }} />
      </span>
    </span>
  );
}
