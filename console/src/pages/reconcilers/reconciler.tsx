import { Alert, Group, SimpleGrid } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { getReconciler, type ReconcilerOut } from "@/api";
import { Act, Command, Crumb, ErrorView, Facts, Go, GoButton, Icon, Page, Panel, ScheduleWords, Stat, Status, When } from "@/parts";
import { HistoryPanel } from "@/parts/versions/History";
import { useWhyFixed } from "./acts";
import { type Asked, Dialogs } from "./dialogs";
import { Drift } from "./Drift";
import { Reports } from "./Reports";

export default function ReconcilerPage() {
  const { reconciler: name } = useParams({ from: "/reconcilers/$reconciler" });
  const { t } = useTranslation(["reconcilers", "common", "schedules"]);
  const [asked, ask] = useState<Asked | null>(null);
  const found = useQuery({ queryKey: ["reconcilers", name], queryFn: ({ signal }) => getReconciler(name, { signal }) });
  return (
    <Page
      title={name}
      above={
        <Crumb>
          <Go to="/reconcilers" size="sm">
            {t("common:page.reconcilers")}
          </Go>
        </Crumb>
      }
      lead={found.data && <Lead reconciler={found.data} />}
      actions={found.data && <Acts reconciler={found.data} ask={ask} />}
    >
      <ErrorView error={found.error} onRetry={() => void found.refetch()} />
      {found.data?.note && (
        <Alert color="gray" icon={<Icon name="info" />} role="note" p="xs">
          {found.data.note}
        </Alert>
      )}
      {!found.error && <Numbers reconciler={found.data} />}
      {found.data && <Source reconciler={found.data} />}
      {found.data && <Reports reconciler={found.data} />}
      {found.data && <HistoryPanel kind="reconciler" name={found.data.name} />}
      <Dialogs asked={asked} onClose={() => ask(null)} />
    </Page>
  );
}

function Lead({ reconciler }: { reconciler: ReconcilerOut }) {
  return (
    <Group gap="md" component="span">
      <Status status={reconciler.status} />
      {reconciler.lastReport && <Drift report={reconciler.lastReport} />}
    </Group>
  );
}

function Acts({ reconciler, ask }: { reconciler: ReconcilerOut; ask: (asked: Asked) => void }) {
  const { t } = useTranslation(["reconcilers", "schedules"]);
  const hold = reconciler.status === "PAUSED" ? "resume" : "pause";
  const whyFixed = useWhyFixed(reconciler);
  return (
    <>
      <Act variant="default" onClick={() => ask({ act: hold, reconciler })} leftSection={<Icon name={hold === "pause" ? "pause" : "right"} size={16} />}>
        {t(`schedules:${hold}.act`)}
      </Act>
      {whyFixed ? (
        <Act needs="admin" variant="default" why={whyFixed} leftSection={<Icon name="edit" size={16} />}>
          {t("act.edit")}
        </Act>
      ) : (
        <GoButton variant="default" to="/reconcilers/$reconciler/edit" params={{ reconciler: reconciler.name }} leftSection={<Icon name="edit" size={16} />}>
          {t("act.edit")}
        </GoButton>
      )}
      <Act needs="admin" variant="default" onClick={() => ask({ act: "delete", reconciler })} leftSection={<Icon name="trash" size={16} />}>
        {t("act.delete")}
      </Act>
      <Act onClick={() => ask({ act: "run", reconciler })} leftSection={<Icon name="play" size={16} />}>
        {t("act.run")}
      </Act>
    </>
  );
}

function Numbers({ reconciler }: { reconciler: ReconcilerOut | undefined }) {
  const { t, i18n } = useTranslation("reconcilers");
  const report = reconciler?.lastReport;
  const number = new Intl.NumberFormat(i18n.language);
  const told = (value: number | null | undefined): string | undefined => {
    if (!reconciler) return undefined;
    return value === null || value === undefined ? "–" : number.format(value);
  };
  return (
    <SimpleGrid cols={{ base: 2, sm: 4 }} spacing="md">
      <Stat label={t("count.found")} value={told(report?.found)} hint={report && <When at={report.startedAt} as="relative" />} />
      <Stat label={t("count.missing")} value={told(report?.missing)} hint={t("count.missingHint")} {...(report && report.missing > 0 && { tone: "warn" as const })} />
      <Stat label={t("count.created")} value={told(report?.created)} hint={t("count.createdHint")} />
      <Stat label={t("count.surplus")} value={told(report?.surplus)} hint={t("count.surplusHint")} {...(report?.surplus && { tone: "warn" as const })} />
    </SimpleGrid>
  );
}

function Source({ reconciler }: { reconciler: ReconcilerOut }) {
  const { t } = useTranslation("reconcilers");
  const { type, url, query, databaseUrl, source } = reconciler.source;
  return (
    <Panel title={t("source.title")}>
      <Facts
        items={[
          [t("source.job"), <Go key="job" to="/jobs/$job" params={{ job: reconciler.job }}>{reconciler.job}</Go>],
          [t("column.schedule"), <ScheduleWords key="schedule" of={reconciler} />],
          [t("column.next"), reconciler.nextFire && <When key="next" at={reconciler.nextFire} zone={reconciler.timezone} />],
          [t("source.type"), String(type)],
          [t("source.url"), url ? String(url) : null],
          [t("source.databaseUrl"), databaseUrl ? String(databaseUrl) : null],
          [t("source.source"), source ? String(source) : null],
          [t("source.query"), query ? <Command key="query" text={String(query)} /> : null],
        ]}
      />
    </Panel>
  );
}
