import { useTranslation } from "react-i18next";
import { useAskedEvery } from "@/live";
import { Page } from "@/parts";
import { Channels } from "./Channels";
import { Deliveries } from "./Deliveries";
import { Firing } from "./Firing";
import { Rules } from "./Rules";
import { Silences } from "./Silences";

const EVERY_MS = 5_000;

/** Alerts that fire, the rules and channels behind them, silences, and the delivery log. */
export default function AlertsPage() {
  const { t } = useTranslation(["alerts", "common"]);
  useAskedEvery(EVERY_MS, ["alerts", "live"]);
  return (
    <Page title={t("common:page.alerts")} lead={t("lead")}>
      <Firing />
      <Rules />
      <Channels />
      <Silences />
      <Deliveries />
    </Page>
  );
}
