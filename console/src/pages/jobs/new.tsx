import { useTranslation } from "react-i18next";
import { Page } from "@/parts";

export default function JobsNewPage() {
  const { t } = useTranslation(["jobs", "common"]);
  return (
    <Page title={t("common:page.jobs")} lead={t("lead")}>
      {null}
    </Page>
  );
}
