import { Group, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { ScheduleFires } from "@/api";
import { Go, ScheduleWords } from "@/parts";

/** A schedule, how many fires it brings, and the way to some of its jobs. */
export function ScheduleLine({ found }: { found: ScheduleFires }) {
  const { t } = useTranslation("forecast");
  const { schedule, examples } = found;
  const rest = found.jobs - examples.length;
  return (
    <div>
      <Group justify="space-between" wrap="nowrap" gap="md">
        <Text size="sm" truncate>
          <ScheduleWords of={schedule} />{" "}
          <Text span size="xs" c="dimmed">
            {schedule.cron && `${schedule.cron} · ${schedule.timezone}`}
          </Text>
        </Text>
        <Text size="sm" c="dimmed" className="numbers" style={{ flex: "none" }}>
          {t("fires", { count: found.fires })}
        </Text>
      </Group>
      <Text size="xs" c="dimmed" truncate>
        {examples.map((job, place) => (
          <span key={job}>
            {place > 0 && " · "}
            <Go to="/jobs/$job/edit" params={{ job }} size="xs">
              {job}
            </Go>
          </span>
        ))}
        {examples.length > 0 && rest > 0 ? ` · ${t("moreJobs", { count: rest })}` : null}
        {examples.length === 0 ? t("jobCount", { count: found.jobs }) : null}
      </Text>
    </div>
  );
}
