import { Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { type DrillDetail, type DrillReport, getDrill } from "@/api";
import { Crumb, ErrorView, Facts, Go, Page, Panel, When, WideTable } from "@/parts";
import { useSeconds } from "./useSeconds";
import { Verdict } from "./Verdict";

/** The report of one drill: its promises, figures and steps. */
export default function DrillPage() {
  const { t } = useTranslation(["drills", "common"]);
  const { drill: id } = useParams({ from: "/drills/$drill" });
  const drill = useQuery({ queryKey: ["drills", id], queryFn: ({ signal }) => getDrill(id, { signal }) });
  return (
    <Page
      title={drill.data ? t(`title.${drill.data.kind}`) : t("common:page.drills")}
      above={
        <Crumb>
          <Go to="/drills" size="sm">
            {t("common:page.drills")}
          </Go>
        </Crumb>
      }
      lead={drill.data && <When at={drill.data.failedAt} />}
      actions={drill.data && <Verdict isKept={drill.data.kept} />}
    >
      <ErrorView error={drill.error} onRetry={() => void drill.refetch()} />
      {drill.data && (
        <>
          <Promises report={drill.data.report} />
          <Found report={drill.data.report} />
          <Figures drill={drill.data} />
          <Steps report={drill.data.report} />
        </>
      )}
    </Page>
  );
}

function Promises({ report }: { report: DrillReport }) {
  const { t } = useTranslation("drills");
  return (
    <Panel title={t("promises.title")}>
      <WideTable minWidth={420}>
        <Table aria-label={t("promises.title")}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t("promises.promise")}</Table.Th>
              <Table.Th>{t("promises.limit")}</Table.Th>
              <Table.Th>{t("promises.measured")}</Table.Th>
              <Table.Th>{t("promises.kept")}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {report.promises.map((each) => (
              <Table.Tr key={each.promise}>
                <Table.Td>{each.promise}</Table.Td>
                <Table.Td>{each.limit}</Table.Td>
                <Table.Td>{each.measured}</Table.Td>
                <Table.Td fw={each.kept ? 400 : 700}>{t(each.kept ? "promises.yes" : "promises.no")}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </WideTable>
    </Panel>
  );
}

function Figures({ drill }: { drill: DrillDetail }) {
  const { t, i18n } = useTranslation("drills");
  const seconds = useSeconds();
  const { report } = drill;
  const { format } = new Intl.NumberFormat(i18n.language);
  const isOfNewCluster = !report.cluster;
  return (
    <Panel title={t("figures.title")}>
      <Facts
        items={[
          [t("figures.cluster"), report.cluster ?? t("own")],
          [t("figures.move"), report.move && t(`figures.${report.move}`)],
          [t("column.rto"), seconds(report.rtoSeconds)],
          [t("column.rpo"), seconds(report.rpoSeconds)],
          [t("figures.paused"), seconds(report.writesPausedSeconds)],
          [t("figures.delayed"), seconds(report.workDelayedSeconds)],
          [t("figures.acknowledged"), format(report.acknowledged)],
          [t("figures.refused"), format(report.refused)],
          [t("figures.calls"), format(report.calls)],
          [t("figures.lost"), format(report.lost)],
          [t("figures.inFlight"), format(report.repeatedInFlight)],
          [t("figures.outside"), format(report.repeatedOutsideFlight)],
          [t("figures.letters"), isOfNewCluster && format(report.deadLetters)],
          [t("figures.lettersLost"), isOfNewCluster && format(report.deadLettersLost)],
          [t("figures.rate"), t("figures.perSecond", { rate: format(report.ratePerSecond) })],
          [t("figures.replication"), report.replication],
          [t("figures.lease"), report.leaseSeconds !== null && seconds(report.leaseSeconds)],
          [t("figures.machine"), report.machine],
          [t("figures.version"), report.horai],
          [t("column.by"), drill.filedBy || t("noName")],
          [t("column.filed"), <When key="filed" at={drill.filedAt} />],
        ]}
      />
    </Panel>
  );
}

/** The instances and violations that the report names, if there are any. */
function Found({ report }: { report: DrillReport }) {
  const { t } = useTranslation("drills");
  const found = [
    [t("found.lost"), report.lostInstances],
    [t("found.repeated"), report.repeatedInstances],
    [t("found.violations"), report.violations],
  ] as const;
  if (found.every(([, lines]) => lines.length === 0)) return null;
  return (
    <Panel title={t("found.title")}>
      <Facts items={found.map(([name, lines]) => [name, lines.length > 0 && lines.join(", ")] as const)} />
    </Panel>
  );
}

function Steps({ report }: { report: DrillReport }) {
  const { t } = useTranslation("drills");
  const seconds = useSeconds();
  return (
    <Panel title={t("steps.title")}>
      <Stack gap={4} component="ol" m={0} p={0} style={{ listStyle: "none" }}>
        {report.steps.map((each) => (
          <Text key={`${each.second} ${each.step}`} component="li" size="sm">
            <span className="numbers">{seconds(each.second)}</span> · {each.step}
          </Text>
        ))}
      </Stack>
    </Panel>
  );
}
