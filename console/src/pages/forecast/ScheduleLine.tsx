import { Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { ScheduleFires } from "@/api";
import { Go } from "@/parts";
import { ScheduleHead } from "./ScheduleHead";

/** A schedule, how many fires it brings, and the way to some of its jobs. */
export function ScheduleLine({ found }: { found: ScheduleFires }) {
  const { t } = useTranslation("forecast");
  const { schedule, examples } = found;
  const rest = found.jobs - examples.length;
  return (
    <div>
      <ScheduleHead schedule={schedule} fires={found.fires} />
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
