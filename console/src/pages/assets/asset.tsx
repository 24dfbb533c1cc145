import { SimpleGrid, Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type AssetShown, getAsset } from "@/api";
import { useAskedEvery } from "@/live";
import { Act, Crumb, ErrorView, Go, Icon, Page, When } from "@/parts";
import { History } from "./History";
import { UpdateDialog } from "./UpdateDialog";
import { Uses } from "./Uses";

const EVERY_MS = 5_000;

/** One asset: what produces it, what it starts, and its updates. */
export default function AssetPage() {
  const { name } = useParams({ from: "/assets/$name" });
  const { t } = useTranslation(["assets", "common"]);
  useAskedEvery(EVERY_MS, ["assets", name]);
  const [isUpdating, update] = useState(false);
  const asset = useQuery({ queryKey: ["assets", name, "uses"], queryFn: ({ signal }) => getAsset(name, { limit: 1 }, { signal }) });
  return (
    <Page
      title={name}
      above={
        <Crumb>
          <Go to="/assets" size="sm">
            {t("common:page.assets")}
          </Go>
        </Crumb>
      }
      lead={asset.data && <Lead asset={asset.data} />}
      actions={
        asset.data && (
          <Act onClick={() => update(true)} leftSection={<Icon name="plus" size={16} />}>
            {t("update.act")}
          </Act>
        )
      }
    >
      <ErrorView error={asset.error} onRetry={() => void asset.refetch()} />
      {asset.isPending && <Skeleton height={120} />}
      {asset.data && (
        <>
          <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md">
            <Uses title={t("column.producers")} none={t("uses.noProducers")} uses={asset.data.uses.filter(({ role }) => role === "PRODUCES")} />
            <Uses title={t("column.consumers")} none={t("uses.noConsumers")} uses={asset.data.uses.filter(({ role }) => role === "WAITS")} />
          </SimpleGrid>
          <History key={name} name={name} />
        </>
      )}
      {isUpdating && <UpdateDialog name={name} onClose={() => update(false)} />}
    </Page>
  );
}

function Lead({ asset }: { asset: AssetShown }) {
  const { t } = useTranslation("assets");
  return (
    <>
      {t("column.updated")}: <When at={asset.updatedAt} />
    </>
  );
}
