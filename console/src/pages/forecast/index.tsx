import { useTranslation } from "react-i18next";
import { Page } from "@/parts";

export default function ForecastPage() {
  const { t } = useTranslation(["forecast", "common"]);
  return (
    <Page title={t("common:page.forecast")} lead={t("lead")}>
      {null}
    </Page>
  );
}
