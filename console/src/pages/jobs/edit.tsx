import { Alert, Group, Skeleton, Stack } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { fieldErrors, getJob, type JobOut, patchJob, ProblemError } from "@/api";
import { Act, CopyAs, ErrorView, GoButton, Icon, Page } from "@/parts";
import { Back } from "./Back";
import { draftOf, patchOf } from "./form/draft";
import { JobFields } from "./form/JobFields";
import { amendment } from "./recipes";

/** Changes a job. What others changed since it was opened is not overwritten: the server compares versions. */
export default function EditJobPage() {
  const { t } = useTranslation("jobs");
  const { job: name } = useParams({ from: "/jobs/$job/edit" });
  const job = useQuery({
    queryKey: ["edited job", name],
    queryFn: ({ signal }) => getJob(name, { signal }),
    staleTime: Infinity,
    gcTime: 0,
  });
  return (
    <Page title={t("edit.title", { name })} lead={t("edit.lead")} above={<Back job={name} />}>
      <ErrorView error={job.error} onRetry={() => void job.refetch()} />
      {job.isPending && <Skeleton height={480} />}
      {job.data && <Changes key={job.data.version} job={job.data} onReload={() => void job.refetch()} />}
    </Page>
  );
}

function Changes({ job, onReload }: { job: JobOut; onReload: () => void }) {
  const { t } = useTranslation(["jobs", "common"]);
  const navigate = useNavigate();
  const queries = useQueryClient();
  const before = draftOf(job);
  const [draft, setDraft] = useState(before);
  const [isJson, setIsJson] = useState(true);
  const patch = patchOf(before, draft);
  const isSame = Object.keys(patch).length === 0;
  const save = useMutation({
    mutationFn: () => patchJob(job.id, patch, { headers: { "If-Match": `"${job.version}"` } }),
    onSuccess: async () => {
      notifications.show({ message: t("edit.done", { name: job.name }) });
      await queries.invalidateQueries({ queryKey: ["jobs"] });
      await navigate({ to: "/jobs/$job", params: { job: job.name } });
    },
  });
  const errors = fieldErrors(save.error);
  const why = isJson ? (isSame ? t("edit.same") : null) : t("form.notJson");
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (!why && !save.isPending) save.mutate();
      }}
    >
      <Stack gap="lg">
        {job.declaredBy && (
          <Alert color="orange" icon={<Icon name="warning" />}>
            {t("declared", { app: job.declaredBy })}
          </Alert>
        )}
        <JobFields
          isThere
          draft={draft}
          errors={errors}
          onChange={(change) => setDraft((last) => ({ ...last, ...change }))}
          onPayloadValid={setIsJson}
        />
        <ErrorView error={save.error} {...(isStale(save.error) && { onRetry: onReload })} />
        <Group justify="space-between">
          <CopyAs recipe={amendment(job, patch)} />
          <Group gap="xs">
            <GoButton variant="default" to="/jobs/$job" params={{ job: job.name }}>
              {t("common:dialog.cancel")}
            </GoButton>
            <Act needs="admin" type="submit" why={why} loading={save.isPending}>
              {t("edit.save")}
            </Act>
          </Group>
        </Group>
      </Stack>
    </form>
  );
}

/** Somebody else changed the job since it was opened. */
function isStale(error: unknown): boolean {
  return error instanceof ProblemError && error.problem.status === 412;
}
