import { Badge, Code, Group, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { JobOut } from "@/api";
import { Facts, Go, JsonView, Panel, When } from "@/parts";
import { calendarEntries } from "../form/draft";

/** What the job says about itself. */
export function JobFacts({ job }: { job: JobOut }) {
  const { t } = useTranslation(["jobs", "common"]);
  const { retry } = job;
  return (
    <Panel title={t("facts.title")} fz="sm">
      <Facts
        items={[
          [t("facts.id"), job.id],
          [t("form.owner"), job.owner && <Go key="owner" inherit to="/jobs" search={{ owner: job.owner }}>{job.owner}</Go>],
          [t("facts.cron"), job.cron && <Code key="cron">{job.cron}</Code>],
          [t("facts.zone"), job.timezone],
          [t("facts.target"), <TargetLine key="target" job={job} />],
          [t("form.queue"), <Go key="queue" inherit to="/jobs" search={{ queue: job.queue }}>{job.queue}</Go>],
          [t("form.priority"), t(`common:priority.${job.priority}`)],
          [t("form.timeout"), job.timeout ?? t("common:none")],
          [t("form.part.retry"), t("facts.retry", { count: retry.maxRetry, base: retry.base, cap: retry.cap, lost: retry.maxLost })],
          [t("form.misfire"), (job.cron || job.every) && t(`form.misfires.${misfireOf(job)}`)],
          [t("form.overlap"), (job.cron || job.every) && t(`form.overlaps.${job.overlap}`)],
          [t("form.jitter"), job.jitter],
          [t("form.calendar"), calendarEntries(job.calendar).join(", ") || null],
          [t("form.startAt"), job.startAt && <When key="start" at={job.startAt} zone={job.timezone ?? null} />],
          [t("form.endAt"), job.endAt && <When key="end" at={job.endAt} zone={job.timezone ?? null} />],
          [t("facts.refresh"), job.refresh?.window && <Go key="refresh" inherit to="/refresh/$job" params={{ job: job.name }}>{job.refresh.window}</Go>],
          [t("form.tags"), job.tags.length > 0 && <Tags key="tags" tags={job.tags} />],
          [t("form.encrypted"), job.encrypted && t("facts.encrypted")],
          [t("form.searchPaths"), job.searchPaths?.length ? job.searchPaths.join(", ") : null],
          [t("facts.concurrencyPerKey"), job.concurrencyPerKey],
          [t("form.keepHistory"), job.keepHistory],
          [t("form.keepDeadLetters"), job.keepDeadLetters],
          [t("facts.created"), <When key="created" at={job.createdAt} />],
          [t("facts.updated"), <When key="updated" at={job.updatedAt} />],
        ]}
      />
      {job.payload !== null && job.payload !== undefined && (
        <>
          <Text size="sm" c="dimmed" mt="md" mb={4}>
            {t("form.payload")}
          </Text>
          <JsonView value={job.payload} />
        </>
      )}
    </Panel>
  );
}

function misfireOf(job: JobOut) {
  return typeof job.misfire === "string" ? job.misfire : job.misfire.policy;
}

function TargetLine({ job }: { job: JobOut }) {
  const { t } = useTranslation("jobs");
  const { type, method, url, handler, broker, subject, settleOn, batch } = job.target;
  if (type === "nats") return t(settleOn === "reported" ? "facts.natsReported" : "facts.nats", { broker, subject });
  if (type === "worker") return t("facts.handler", { name: handler });
  return (
    <>
      <Code>{`${method} ${url}`}</Code>
      {batch && ` ${t("facts.batch", { size: batch.size })}`}
    </>
  );
}

function Tags({ tags }: { tags: readonly string[] }) {
  return (
    <Group gap={4}>
      {tags.map((tag) => (
        <Go key={tag} to="/jobs" search={{ tag }}>
          <Badge variant="light" tt="none" style={{ cursor: "inherit" }}>
            {tag}
          </Badge>
        </Go>
      ))}
    </Group>
  );
}
