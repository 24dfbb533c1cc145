import { Group, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { ScheduleFires } from "@/api";
import { ScheduleWords } from "@/parts";

/** A schedule in words and as it is written, and how many fires it brings. */
export function ScheduleHead({ schedule, fires }: Pick<ScheduleFires, "schedule" | "fires">) {
  const { t } = useTranslation("forecast");
  return (
    <Group justify="space-between" wrap="nowrap" gap="md">
      <Text size="sm" truncate>
        <ScheduleWords of={schedule} />{" "}
        <Text span size="xs" c="dimmed">
          {schedule.cron && `${schedule.cron} · ${schedule.timezone}`}
        </Text>
      </Text>
      <Text size="sm" c="dimmed" className="numbers" style={{ flex: "none" }}>
        {t("fires", { count: fires })}
      </Text>
    </Group>
  );
}
