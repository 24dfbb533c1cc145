import { useTranslation } from "react-i18next";
import { Page } from "@/parts";

export default function InstancesInstancePage() {
  const { t } = useTranslation(["instances", "common"]);
  return (
    <Page title={t("common:page.instances")} lead={t("lead")}>
      {null}
    </Page>
  );
}
