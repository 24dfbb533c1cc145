import { useTranslation } from "react-i18next";
import { Page } from "@/parts";

export default function ReconcilersPage() {
  const { t } = useTranslation(["reconcilers", "common"]);
  return (
    <Page title={t("common:page.reconcilers")} lead={t("lead")}>
      {null}
    </Page>
  );
}
