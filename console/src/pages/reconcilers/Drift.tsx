import { Group, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { ReportSummary } from "@/api";
import { Icon } from "@/parts";

type Finding = "running" | "broken" | "drift" | "surplus" | "agreed";

/** What a report comes to, worst first. One that has not finished and has no error is under way. */
export function findingOf(report: ReportSummary): Finding {
  if (report.error !== null) return "broken";
  if (report.finishedAt === null) return "running";
  if (report.missing > 0) return "drift";
  return report.surplus ? "surplus" : "agreed";
}

const LOOKS = {
  running: { icon: "refresh", colour: "var(--state-RUNNING-text)" },
  broken: { icon: "warning", colour: "var(--horai-bad)" },
  drift: { icon: "warning", colour: "var(--horai-warn)" },
  surplus: { icon: "info", colour: "var(--horai-warn)" },
  agreed: { icon: "check", colour: "var(--horai-good)" },
} as const;

/** Whether the business and Horai agreed, in a few words. */
export function Drift({ report }: { report: ReportSummary }) {
  const { t } = useTranslation("reconcilers");
  const finding = findingOf(report);
  const { icon, colour } = LOOKS[finding];
  return (
    <Group gap={6} wrap="nowrap" c={colour}>
      <span style={{ flex: "none", lineHeight: 0 }}>
        <Icon name={icon} size={16} />
      </span>
      <Text span size="sm" fw={500} truncate title={report.error ?? undefined}>
        {finding === "drift" ? t("finding.drift", { missing: report.missing, created: report.created }) : null}
        {finding === "surplus" ? t("finding.surplus", { surplus: report.surplus }) : null}
        {finding === "broken" ? report.error : null}
        {finding === "running" || finding === "agreed" ? t(`finding.${finding}`) : null}
      </Text>
    </Group>
  );
}
