import { Group, Skeleton, Stack, Text } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { getForecastMinute, type ScheduleInMinute } from "@/api";
import { ErrorView, Go, Panel, When } from "@/parts";
import { ScheduleHead } from "./ScheduleHead";

const SCHEDULES = 8;
const NAMES = 8;

/** What fires in the minute that was clicked on: its schedules, and the jobs that follow them. */
export function ThisMinute({ at }: { at: string }) {
  const { t } = useTranslation("forecast");
  const minute = useQuery({
    queryKey: ["forecast", "minute", at],
    queryFn: ({ signal }) => getForecastMinute({ at }, { signal }),
    placeholderData: keepPreviousData,
  });
  const schedules = minute.data?.schedules ?? [];
  return (
    <Panel
      title={t("minute.title")}
      aside={
        <Text size="sm" c="dimmed">
          <When at={at} precision="minute" />
        </Text>
      }
    >
      <ErrorView error={minute.error} />
      {minute.isPending && <Skeleton height={96} />}
      {minute.data && schedules.length === 0 && (
        <Text size="sm" c="dimmed">
          {t("minute.nothing")}
        </Text>
      )}
      <Stack gap="sm">
        {schedules.slice(0, SCHEDULES).map((found) => (
          <Line key={JSON.stringify(found.schedule)} found={found} />
        ))}
      </Stack>
      {schedules.length > SCHEDULES && (
        <Text size="sm" c="dimmed" mt="sm">
          {t("hot.more", { count: schedules.length - SCHEDULES })}
        </Text>
      )}
    </Panel>
  );
}

function Line({ found }: { found: ScheduleInMinute }) {
  const { t } = useTranslation("forecast");
  const rest = found.jobs - Math.min(found.names.length, NAMES);
  return (
    <div>
      <ScheduleHead schedule={found.schedule} fires={found.fires} />
      <Group gap="4px 12px">
        {found.names.slice(0, NAMES).map((job) => (
          <Go key={job.name} to="/jobs/$job" params={{ job: job.name }} size="sm">
            {job.name}
          </Go>
        ))}
        {rest > 0 && (
          <Text size="sm" c="dimmed">
            {t(found.names.length > 0 ? "moreJobs" : "jobCount", { count: rest })}
          </Text>
        )}
      </Group>
    </div>
  );
}
