import { useTranslation } from "react-i18next";
import { seesPlatform, useSession } from "@/live";
import { Page } from "@/parts";
import { Clogged } from "./Clogged";
import { Lost } from "./Lost";
import { Nodes } from "./Nodes";
import { Queues } from "./Queues";
import { Shards } from "./Shards";

export default function QueuesPage() {
  const { t } = useTranslation(["queues", "common"]);
  const session = useSession().data;
  return (
    <Page title={t("common:page.queues")} lead={t("lead")}>
      <Clogged />
      <Queues />
      {seesPlatform(session) && (
        <>
          <Nodes />
          <Shards />
          <Lost />
        </>
      )}
    </Page>
  );
}
