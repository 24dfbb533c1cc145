import { useTranslation } from "react-i18next";
import { Page } from "@/parts";

export default function WorkflowsWorkflowPage() {
  const { t } = useTranslation(["workflows", "common"]);
  return (
    <Page title={t("common:page.workflows")} lead={t("lead")}>
      {null}
    </Page>
  );
}
