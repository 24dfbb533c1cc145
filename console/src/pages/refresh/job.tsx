import { useTranslation } from "react-i18next";
import { Page } from "@/parts";

export default function RefreshJobPage() {
  const { t } = useTranslation(["refresh", "common"]);
  return (
    <Page title={t("common:page.refresh")} lead={t("lead")}>
      {null}
    </Page>
  );
}
