import { useTranslation } from "react-i18next";
import { Page } from "@/parts";

export default function DeadLettersLetterPage() {
  const { t } = useTranslation(["dead-letters", "common"]);
  return (
    <Page title={t("common:page.dead-letters")} lead={t("lead")}>
      {null}
    </Page>
  );
}
