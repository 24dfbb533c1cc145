import { Alert, Code, List, Stack, Title } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { ReportOut } from "@/api";
import { between, Duration, Facts, Go, Icon, When } from "@/parts";
import { Drift } from "./Drift";

/** One comparison, with examples of what it counted. */
export function Report({ report, zone }: { report: ReportOut; zone: string | null }) {
  const { t } = useTranslation("reconcilers");
  return (
    <Stack gap="lg">
      {report.error ? (
        <Alert color="red" variant="light" icon={<Icon name="warning" />} title={t("reports.broken")}>
          <span style={{ overflowWrap: "anywhere" }}>{report.error}</span>
        </Alert>
      ) : (
        <Drift report={report} />
      )}
      <Facts
        items={[
          [t("reports.started"), <When key="started" at={report.startedAt} zone={zone} />],
          [t("reports.took"), <Duration key="took" ms={between(report.startedAt, report.finishedAt)} />],
          [t("reports.instance"), <Go key="instance" to="/instances/$instance" params={{ instance: report.instanceId }} className="numbers">{report.instanceId}</Go>],
          [t("count.found"), report.found],
          [t("count.missing"), report.missing],
          [t("count.created"), report.created],
          [t("count.surplus"), report.surplus ?? "–"],
          [t("count.leftAlone"), report.leftAlone],
          [t("count.faulty"), report.faulty],
        ]}
      />
      <Examples title={t("count.missing")} items={report.examples.missing.map((key) => [key, null])} />
      <Examples title={t("count.surplus")} items={report.examples.surplus.map((key) => [key, null])} />
      <Examples title={t("count.faulty")} items={report.examples.faulty.map((fault) => [fault.key ?? "–", fault.why])} />
    </Stack>
  );
}

function Examples({ title, items }: { title: string; items: [key: string, why: string | null][] }) {
  const { t } = useTranslation("reconcilers");
  if (items.length === 0) return null;
  return (
    <section>
      <Title order={3} fz="sm" mb={4}>
        {t("reports.examples", { of: title })}
      </Title>
      <List size="sm" spacing={2} style={{ overflowWrap: "anywhere" }}>
        {[...new Map(items)].map(([key, why]) => (
          <List.Item key={key}>
            <Code>{key}</Code> {why}
          </List.Item>
        ))}
      </List>
    </section>
  );
}
