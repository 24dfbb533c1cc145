import { Stack } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { seesPlatform, useSession } from "@/live";
import { HealthPanel } from "@/panels";
import { Page } from "@/parts";
import { Attention } from "./Attention";
import { Cluster } from "./Cluster";
import { Counters } from "./Counters";
import classes from "./overview.module.css";
import { Trends } from "./Trends";

/** How everything is: health, what is live, how the last hours went, and what needs somebody. */
export default function OverviewPage() {
  const { t } = useTranslation(["overview", "common"]);
  const session = useSession().data;
  return (
    <Page title={t("common:page.overview")} lead={t("lead")}>
      <HealthPanel />
      <div className={classes.columns}>
        <Attention />
        <Stack gap="lg">
          <Counters />
          {seesPlatform(session) && <Cluster />}
        </Stack>
      </div>
      <Trends />
    </Page>
  );
}
