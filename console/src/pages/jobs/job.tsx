import { Alert, Group, Skeleton, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { getJob, type JobOut } from "@/api";
import { ErrorView, Icon, Page, Status, useLinkedDialog } from "@/parts";
import { HistoryPanel } from "@/parts/versions/History";
import { Back } from "./Back";
import { Backfills } from "./backfill/Backfills";
import { BackfillWizard } from "./backfill/BackfillWizard";
import { Actions } from "./detail/Actions";
import { Days } from "./detail/Days";
import classes from "./detail/detail.module.css";
import { ExplainSlot } from "./detail/ExplainSlot";
import { JobFacts } from "./detail/JobFacts";
import { NextFires } from "./detail/NextFires";
import { Recent } from "./detail/Recent";
import { type Asked, Dialogs } from "./dialogs";
import { JobSchedule } from "./schedule";
import { isBuiltin } from "./useActs";

/** One job: what it is, how it went, what comes next, and everything that can be done with it. */
export default function JobPage() {
  const { job: name } = useParams({ from: "/jobs/$job" });
  const job = useQuery({ queryKey: ["jobs", name], queryFn: ({ signal }) => getJob(name, { signal }) });
  if (!job.data) {
    return (
      <Page title={name} above={<Back />}>
        {job.error ? <ErrorView error={job.error} onRetry={() => void job.refetch()} /> : <Waiting />}
      </Page>
    );
  }
  return <Loaded job={job.data} />;
}

function Loaded({ job }: { job: JobOut }) {
  const navigate = useNavigate();
  const [pressed, ask] = useState<Asked | null>(null);
  const [linked, closeLinked] = useLinkedDialog(["trigger", job.status === "PAUSED" ? "resume" : "pause"]);
  const asked = pressed ?? (linked && { act: linked, job });
  const close = (): void => {
    ask(null);
    closeLinked();
  };
  const [isFilling, fill] = useState(false);
  return (
    <Page
      title={job.name}
      lead={<Lead job={job} />}
      above={<Back />}
      actions={<Actions job={job} onAsk={ask} onBackfill={() => fill(true)} />}
    >
      <Notices job={job} />
      <div className={classes.columns}>
        <Stack gap="lg">
          <Recent job={job} />
          <Backfills job={job} />
          <ExplainSlot job={job} />
        </Stack>
        <Stack gap="lg">
          <NextFires job={job} />
          <Days job={job} />
          <JobFacts job={job} />
          {!isBuiltin(job) && <HistoryPanel kind="job" name={job.name} />}
        </Stack>
      </div>
      <Dialogs asked={asked} onClose={close} onDeleted={() => void navigate({ to: "/jobs" })} />
      {isFilling && <BackfillWizard job={job} onClose={() => fill(false)} />}
    </Page>
  );
}

/** The title, by which a reader knows the job, its status and its schedule. */
function Lead({ job }: { job: JobOut }) {
  return (
    <Group gap="sm" component="span">
      {job.title && (
        <Text span inherit fw={600} c="var(--mantine-color-text)">
          {job.title}
        </Text>
      )}
      <Status status={job.status} />
      <span>
        <JobSchedule job={job} />
      </span>
    </Group>
  );
}

function Notices({ job }: { job: JobOut }) {
  const { t } = useTranslation("jobs");
  return (
    <>
      {job.description && (
        <Text size="sm" maw="80ch" style={{ overflowWrap: "anywhere", whiteSpace: "pre-wrap" }}>
          {job.description}
        </Text>
      )}
      {job.status === "PAUSED" && (
        <Alert color="gray" icon={<Icon name="pause" />} classNames={{ root: classes.held!, icon: classes.warn! }} role="note">
          <Text size="sm" fw={600}>
            {t("paused.title")}
          </Text>
          <Text size="sm" style={{ overflowWrap: "anywhere" }}>
            {job.note ?? t("paused.hint")}
          </Text>
        </Alert>
      )}
      {job.declaredBy && (
        <Alert color="gray" icon={<Icon name="info" />} p="xs" role="note">
          {t("declared", { app: job.declaredBy })}
        </Alert>
      )}
    </>
  );
}

function Waiting() {
  return (
    <div className={classes.columns}>
      <Stack gap="lg">
        <Skeleton height={320} />
        <Skeleton height={160} />
      </Stack>
      <Stack gap="lg">
        <Skeleton height={280} />
        <Skeleton height={280} />
      </Stack>
    </div>
  );
}
