import { useTranslation } from "react-i18next";
import { Page } from "@/parts";

export default function OverviewPage() {
  const { t } = useTranslation(["overview", "common"]);
  return (
    <Page title={t("common:page.overview")} lead={t("lead")}>
      {null}
    </Page>
  );
}
