import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { Group } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { getJob, type JobOut } from "@/api";
import { Crumb, ErrorView, Go, GoButton, Icon, Page, ScheduleWords, Status } from "@/parts";
import { Entities } from "./Entities";
import { Overview } from "./Overview";
import { TickNow } from "./TickNow";

export default function RefreshJobPage() {
  const { job: name } = useParams({ from: "/refresh/$job" });
  const { t } = useTranslation(["refresh", "common", "schedules"]);
  const job = useQuery({ queryKey: ["jobs", name], queryFn: ({ signal }) => getJob(name, { signal }) });
  return (
    <Page
      title={name}
      above={
        <Crumb>
          <Go to="/refresh" size="sm">
            {t("common:page.refresh")}
          </Go>
        </Crumb>
      }
      lead={job.data && <Lead job={job.data} />}
      actions={
        job.data && (
          <>
            <GoButton variant="default" to="/jobs/$job" params={{ job: name }} leftSection={<Icon name="jobs" size={16} />}>
              {t("toJob")}
            </GoButton>
            <TickNow job={job.data} />
          </>
        )
      }
    >
      <ErrorView error={job.error} onRetry={() => void job.refetch()} />
      {!job.error && <Overview job={name} zone={job.data?.timezone ?? null} />}
      {job.data && <Entities job={job.data} />}
    </Page>
  );
}

function Lead({ job }: { job: JobOut }) {
  const { t } = useTranslation("refresh");
  return (
    <Group gap="sm" component="span">
      <Status status={job.status} />
      <span>
        {t("ticks")} <ScheduleWords of={job} /> · {t("window", { window: job.refresh?.window })}
      </span>
    </Group>
  );
}
