import { Skeleton, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { getNext, type JobOut } from "@/api";
import { ErrorView, Panel } from "@/parts";
import { Fires } from "../Fires";
import { kindOf } from "../schedule";

/** When the job fires next. */
export function NextFires({ job }: { job: JobOut }) {
  const { t } = useTranslation("jobs");
  const next = useQuery({
    queryKey: ["instances", "next", job.id, job.version],
    queryFn: ({ signal }) => getNext(job.id, { count: 5 }, { signal }),
  });
  const zone = job.timezone ?? "UTC";
  return (
    <Panel
      title={t("fires.title")}
      aside={
        <Text size="sm" c="dimmed">
          {zone}
        </Text>
      }
    >
      {job.status === "PAUSED" && kindOf(job) !== "manual" && (
        <Text size="sm" c="var(--horai-warn)">
          {t("fires.paused")}
        </Text>
      )}
      <ErrorView error={next.error} />
      {next.isPending && (
        <Stack gap="xs">
          {Array.from({ length: 5 }, (_, line) => (
            <Skeleton key={line} height={28} />
          ))}
        </Stack>
      )}
      {next.data && next.data.fires.length > 0 && <Fires fires={next.data.fires} zone={zone} hasLinks />}
      {next.data && next.data.fires.length === 0 && (
        <Text size="sm" c="dimmed">
          {t(kindOf(job) === "manual" ? "fires.manual" : "fires.none")}
        </Text>
      )}
    </Panel>
  );
}
