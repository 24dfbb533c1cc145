import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { getMode, getThresholds } from "@/api";
import { seesPlatform, useSession } from "@/live";
import { ErrorView, Page } from "@/parts";
import { History } from "./History";
import { Holds } from "./Holds";
import { Modes } from "./Modes";
import { ServiceLevel } from "./ServiceLevel";
import { Thresholds } from "./Thresholds";

const EVERY_MS = 5_000;

/** What the governor limits now and why, what operators hold by hand, its thresholds, and its history. */
export default function GovernorPage() {
  const { t } = useTranslation(["governor", "common"]);
  const session = useSession().data;
  const mode = useQuery({ queryKey: ["governor", "mode"], queryFn: ({ signal }) => getMode({ signal }), refetchInterval: EVERY_MS });
  const rules = useQuery({ queryKey: ["governor", "thresholds"], queryFn: ({ signal }) => getThresholds({ signal }), refetchInterval: EVERY_MS });
  return (
    <Page title={t("common:page.governor")} lead={t("lead")}>
      <ErrorView error={mode.error ?? rules.error} onRetry={() => void Promise.all([mode.refetch(), rules.refetch()])} />
      {mode.data && rules.data && (
        <>
          <Modes governor={mode.data} thresholds={rules.data} />
          <Holds governor={mode.data} />
          {seesPlatform(session) && <ServiceLevel />}
          <Thresholds thresholds={rules.data} />
        </>
      )}
      <History />
    </Page>
  );
}
