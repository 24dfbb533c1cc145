import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { type AssetOut, getAssetGraph, getAssets } from "@/api";
import { useAskedEvery } from "@/live";
import { type Column, DataTable, EmptyState, Go, Page, When } from "@/parts";
import { AssetGraph } from "./AssetGraph";
import { workflowsIn } from "./links";
import { Updater, UserLink } from "./parts";

const EVERY_MS = 5_000;
/** The names that a cell shows; it says how many more there are. */
const MOST_NAMES = 2;
const NO_WORKFLOWS: ReadonlySet<string> = new Set();

/** The assets of the tenant, and what updates them and what they start. */
export default function AssetsPage() {
  const { t } = useTranslation(["assets", "common"]);
  useAskedEvery(EVERY_MS, ["assets"]);
  const graph = useQuery({ queryKey: ["assets", "graph"], queryFn: ({ signal }) => getAssetGraph({ signal }) });
  const links = graph.data?.links;
  const workflows = useMemo(() => (links ? workflowsIn(links) : NO_WORKFLOWS), [links]);
  const columns = useColumns(workflows);
  return (
    <Page title={t("common:page.assets")} lead={t("lead")}>
      {links && <AssetGraph links={links} />}
      <DataTable<AssetOut>
        label={t("common:page.assets")}
        queryKey={["assets", "list"]}
        fetchPage={(cursor, signal) => getAssets({ limit: 100, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(asset) => asset.name}
        rowHeight={60}
        empty={
          <EmptyState icon="assets" title={t("empty.title")} command="horai jobs create report --url https://example.com/report --when sales.daily">
            {t("empty.explain")}
          </EmptyState>
        }
      />
    </Page>
  );
}

function useColumns(workflows: ReadonlySet<string>): Column<AssetOut>[] {
  const { t, i18n } = useTranslation("assets");
  return useMemo(
    () => [
      {
        id: "name",
        header: t("column.name"),
        width: "minmax(180px, 1.5fr)",
        sortBy: (asset) => asset.name,
        cell: (asset) => (
          <Go to="/assets/$name" params={{ name: asset.name }} inherit fw={600} c="inherit" title={asset.name}>
            <bdi>{asset.name}</bdi>
          </Go>
        ),
      },
      { id: "updated", header: t("column.updated"), width: "176px", sortBy: (asset) => asset.updatedAt, cell: (asset) => <When at={asset.updatedAt} as="both" /> },
      { id: "by", header: t("column.by"), width: "minmax(140px, 1fr)", cell: (asset) => <LastUpdater asset={asset} workflows={workflows} /> },
      { id: "producers", header: t("column.producers"), width: "minmax(140px, 1fr)", cell: (asset) => <Users names={asset.producers} workflows={workflows} /> },
      { id: "consumers", header: t("column.consumers"), width: "minmax(140px, 1fr)", cell: (asset) => <Users names={asset.consumers} workflows={workflows} /> },
      {
        id: "updates",
        header: t("column.updates"),
        width: "88px",
        isNumeric: true,
        sortBy: (asset) => asset.updates,
        cell: (asset) => new Intl.NumberFormat(i18n.language).format(asset.updates),
      },
    ],
    [t, i18n.language, workflows],
  );
}

function LastUpdater({ asset, workflows }: { asset: AssetOut; workflows: ReadonlySet<string> }) {
  if (asset.updatedAt === null) return <span aria-hidden>–</span>;
  return (
    <Updater job={asset.lastJob} instanceId={asset.lastInstanceId} actor={asset.lastActor} isWorkflow={workflows.has(asset.lastJob ?? "")} />
  );
}

function Users({ names, workflows }: { names: readonly string[]; workflows: ReadonlySet<string> }) {
  const { t } = useTranslation("assets");
  if (names.length === 0) return <span aria-hidden>–</span>;
  const rest = names.length - MOST_NAMES;
  return (
    <>
      {names.slice(0, rest > 0 ? MOST_NAMES - 1 : MOST_NAMES).map((name) => (
        <Text key={name} size="sm" truncate component="div">
          <UserLink name={name} isWorkflow={workflows.has(name)} />
        </Text>
      ))}
      {rest > 0 && (
        <Text size="xs" c="dimmed" title={names.join(", ")}>
          {t("more", { count: rest + 1 })}
        </Text>
      )}
    </>
  );
}
