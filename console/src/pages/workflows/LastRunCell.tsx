import { Group, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { WorkflowOut } from "@/api";
import { Duration, Go, When } from "@/parts";
import { RunChip } from "./RunChip";

/** The newest run of a workflow, which it links to. */
export function LastRunCell({ workflow }: { workflow: WorkflowOut }) {
  const { t } = useTranslation("workflows");
  const run = workflow.lastRun;
  if (!run) {
    return (
      <Text size="sm" c="dimmed">
        {t("neverRun")}
      </Text>
    );
  }
  return (
    <Group gap="sm" wrap="nowrap" h={32}>
      <Go to="/workflows/$workflow/runs/$run" params={{ workflow: workflow.name, run: run.id }} underline="never">
        <RunChip state={run.state} />
      </Go>
      <Text size="sm" c="dimmed" truncate>
        <When at={run.fireTime} as="relative" />
        {run.durationMs !== null && " · "}
        {run.durationMs !== null && <Duration ms={run.durationMs} />}
      </Text>
    </Group>
  );
}
