import { useTranslation } from "react-i18next";
import type { FireOut } from "@/api";
import { useZone } from "@/app/zones";
import { inWords } from "@/i18n";
import { formatInstant, When } from "@/parts";
import { SlotLink } from "./SlotLink";
import classes from "./Fires.module.css";

/** Coming fires on the clock of the job and, where it is another, on the viewer's; with what a clock change did to them. On the page of a job they lead to the explanation of their slot. */
export function Fires({ fires, zone, hasLinks = false }: { fires: readonly FireOut[]; zone: string; hasLinks?: boolean }) {
  const { t } = useTranslation("jobs");
  const mine = useZone(zone);
  return (
    <ol className={classes.fires} aria-label={t("fires.title")}>
      {fires.map((fire) => (
        <li key={fire.fireTime}>
          <time dateTime={fire.fireTime}>{hasLinks ? <SlotLink at={fire.fireTime}>{formatInstant(new Date(fire.fireTime), zone)}</SlotLink> : formatInstant(new Date(fire.fireTime), zone)}</time>
          <span className={classes.yours}>
            <When at={fire.fireTime} as="relative" />
          </span>
          {mine !== zone && (
            <span className={classes.yours}>
              <When at={fire.fireTime} /> {t("fires.yours", { zone: mine })}
            </span>
          )}
          {fire.executeTime && (
            <span className={classes.yours}>
              {t("fires.spread")} <When at={fire.executeTime} />
            </span>
          )}
          {fire.noteSaid && <span className={classes.note}>{inWords(fire.noteSaid)}</span>}
        </li>
      ))}
    </ol>
  );
}
