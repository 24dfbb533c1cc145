import { Skeleton, Text } from "@mantine/core";
import { type ReactNode, useMemo } from "react";
import { useTranslation } from "react-i18next";
import { getJobs, type ListedJob, type RefreshOut } from "@/api";
import { type Column, DataTable, EmptyState, Go, Page, ScheduleCell, Status, When } from "@/parts";
import { CoverageBar } from "./Coverage";
import { useFreshness } from "./freshness";

const TRY = `horai jobs create refresh_stock --every 1d --refresh 10d --url http://localhost:9000/stock
horai entities add refresh_stock sku-1`;

export default function RefreshPage() {
  const { t, i18n } = useTranslation(["refresh", "common", "schedules"]);
  const columns = useColumns(i18n.language);
  return (
    <Page title={t("common:page.refresh")} lead={t("lead")}>
      <DataTable
        label={t("common:page.refresh")}
        queryKey={["jobs", "refresh"]}
        fetchPage={(cursor, signal) => getJobs({ refresh: true, limit: 50, ...(cursor && { cursor }) }, { signal })}
        columns={columns}
        idOf={(job) => job.id}
        hrefOf={(job) => `/refresh/${encodeURIComponent(job.name)}`}
        rowHeight={56}
        empty={
          <EmptyState icon="refresh" title={t("empty.title")} command={TRY}>
            {t("empty.explain")}
          </EmptyState>
        }
      />
    </Page>
  );
}

function useColumns(language: string): Column<ListedJob>[] {
  const { t } = useTranslation("refresh");
  return useMemo(() => {
    const number = new Intl.NumberFormat(language);
    return [
      {
        id: "job",
        header: t("column.job"),
        width: "minmax(150px, 1.3fr)",
        cell: (job) => (
          <>
            <Go to="/refresh/$job" params={{ job: job.name }} size="sm" fw={600}>
              {job.name}
            </Go>
            <Text size="xs" c="dimmed" truncate>
              {t("window", { window: job.refresh?.window })}
            </Text>
          </>
        ),
      },
      { id: "coverage", header: t("coverage"), width: "minmax(170px, 1fr)", cell: (job) => <Fresh job={job.name} show={(found) => <CoverageBar found={found} />} /> },
      { id: "entities", header: t("entities"), width: "92px", isNumeric: true, cell: (job) => <Fresh job={job.name} show={(found) => number.format(found.entities)} /> },
      {
        id: "overdue",
        header: t("overdue"),
        width: "88px",
        isNumeric: true,
        cell: (job) => <Fresh job={job.name} show={(found) => <Count number={found.overdue} told={number.format(found.overdue)} />} />,
      },
      { id: "oldest", header: t("oldest"), width: "112px", isNumeric: true, cell: (job) => <Fresh job={job.name} show={(found) => found.maxAge ?? "–"} /> },
      { id: "tick", header: t("column.tick"), width: "minmax(130px, 1.2fr)", cell: (job) => <ScheduleCell of={job} /> },
      { id: "next", header: t("nextTick"), width: "156px", cell: (job) => <Fresh job={job.name} show={(found) => <When at={found.nextTick} as="both" precision="minute" zone={job.timezone ?? null} />} /> },
      { id: "status", header: t("column.status"), width: "100px", cell: (job) => <Status status={job.status} /> },
    ];
  }, [t, language]);
}

/** What is known of a job's entities; every cell of a row asks the same question, which is sent once. */
function Fresh({ job, show }: { job: string; show: (found: RefreshOut) => ReactNode }) {
  const found = useFreshness(job);
  if (found.error) return "–";
  return found.data ? show(found.data) : <Skeleton height={12} width="70%" display="inline-block" />;
}

function Count({ number, told }: { number: number; told: string }) {
  return (
    <Text span size="sm" inherit c={number > 0 ? "var(--horai-bad)" : undefined} fw={number > 0 ? 600 : undefined}>
      {told}
    </Text>
  );
}
