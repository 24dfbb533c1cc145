import { useTranslation } from "react-i18next";
import { Page } from "@/parts";

export default function ReconcilersReconcilerPage() {
  const { t } = useTranslation(["reconcilers", "common"]);
  return (
    <Page title={t("common:page.reconcilers")} lead={t("lead")}>
      {null}
    </Page>
  );
}
