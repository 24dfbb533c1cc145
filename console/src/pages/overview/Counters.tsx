import { SimpleGrid } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Stat, StateMark } from "@/parts";
import { useStats } from "./stats";

const SHOWN = ["RUNNING", "INIT", "FAIL", "BLOCKED"] as const;

/** Live instances by state, and what the last hour has made of others; each number leads to its list. */
export function Counters() {
  const { t, i18n } = useTranslation(["overview", "common"]);
  const { data: stats } = useStats();
  const number = new Intl.NumberFormat(i18n.language);
  const sum = (of: "succeeded" | "dead"): string | undefined =>
    stats && number.format(stats.minutes.reduce((total, minute) => total + minute[of], 0));
  const counted = (count: number): string => `${stats?.liveExact ? "" : "≈ "}${number.format(count)}`;
  const hint = (state: (typeof SHOWN)[number]): string | undefined =>
    stats && t(`counter.${state}`, { overdue: counted(stats.overdue), scheduled: counted(Math.max(stats.live.INIT - stats.overdue, 0)) });
  return (
    <SimpleGrid cols={{ base: 2, sm: 3 }} spacing="md">
      {SHOWN.map((state) => (
        <Stat
          key={state}
          label={<Named state={state} />}
          value={stats && counted(stats.live[state])}
          hint={hint(state)}
          to="/instances"
          search={{ state }}
        />
      ))}
      <Stat label={<Named state="SUCCESS" />} value={sum("succeeded")} hint={t("counter.hour")} to="/instances" search={{ state: "SUCCESS" }} />
      <Stat label={<Named state="DEAD" />} value={sum("dead")} hint={t("counter.hour")} to="/dead-letters" />
    </SimpleGrid>
  );
}

function Named({ state }: { state: (typeof SHOWN)[number] | "SUCCESS" | "DEAD" }) {
  const { t } = useTranslation();
  return (
    <span style={{ display: "inline-flex", alignItems: "center", gap: 6 }}>
      <StateMark state={state} />
      {t(`state.${state}`)}
    </span>
  );
}
