import { useState } from "react";
import { useTranslation } from "react-i18next";
import { seesPlatform, useSession } from "@/live";
import { Act, Icon, Page } from "@/parts";
import { CreateKey } from "./CreateKey";
import { Groups } from "./Groups";
import { Keys } from "./Keys";
import { Tenants } from "./Tenants";

export default function AccessPage() {
  const { t } = useTranslation(["access", "common"]);
  const session = useSession().data;
  const [isCreating, create] = useState(false);
  return (
    <Page
      title={t("common:page.access")}
      lead={t("lead")}
      actions={
        <Act needs="keys" onClick={() => create(true)} leftSection={<Icon name="plus" size={16} />}>
          {t("create.act")}
        </Act>
      }
    >
      <Keys />
      {seesPlatform(session) && <Tenants />}
      {seesPlatform(session) && <Groups />}
      <CreateKey opened={isCreating} onClose={() => create(false)} />
    </Page>
  );
}
