import { useTranslation } from "react-i18next";
import { Page } from "@/parts";

export default function QueuesPage() {
  const { t } = useTranslation(["queues", "common"]);
  return (
    <Page title={t("common:page.queues")} lead={t("lead")}>
      {null}
    </Page>
  );
}
