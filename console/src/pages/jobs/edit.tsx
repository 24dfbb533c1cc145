import { Alert, Group, Skeleton, Stack } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { fieldErrors, getJob, type JobOut, patchJob, ProblemError } from "@/api";
import { Act, CopyAs, ErrorView, GoButton, Icon, Page, useDraft } from "@/parts";
import { Restored } from "@/parts/Restored";
import { between } from "@/parts/versions/between";
import { ReviewDialog } from "@/parts/versions/ReviewDialog";
import { Back } from "./Back";
import { draftOf, patchOf } from "./form/draft";
import { JobFields } from "./form/JobFields";
import { useChecks } from "./form/useChecks";
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
  const kept = useDraft(`job ${job.id} ${job.version}`, before);
  const { draft } = kept;
  const { faults, check } = useChecks(draft);
  const [isJson, setIsJson] = useState(true);
  const patch = patchOf(before, draft);
  const isSame = Object.keys(patch).length === 0;
  const seen = { headers: { "If-Match": `"${job.version}"` } };
  const trial = useMutation({ mutationFn: () => patchJob(job.id, patch, { dryRun: true }, seen) });
  const save = useMutation({
    mutationFn: () => patchJob(job.id, patch, undefined, seen),
    onSuccess: async () => {
      kept.forget();
      notifications.show({ message: t("edit.done", { name: job.name }) });
      await queries.invalidateQueries({ queryKey: ["jobs"] });
      await navigate({ to: "/jobs/$job", params: { job: job.name } });
    },
  });
  const errors = fieldErrors(trial.error);
  const why = isJson ? (isSame ? t("edit.same") : null) : t("form.notJson");
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (!why && !trial.isPending && check()) trial.mutate();
      }}
    >
      <Stack gap="lg">
        {job.declaredBy && (
          <Alert color="orange" icon={<Icon name="warning" />}>
            {t("declared", { app: job.declaredBy })}
          </Alert>
        )}
        <Restored draft={kept} />
        <JobFields
          isThere
          key={kept.revision}
          draft={draft}
          errors={{ ...errors, ...faults }}
          onChange={(change) => kept.change((last) => ({ ...last, ...change }))}
          onPayloadValid={setIsJson}
        />
        <ErrorView error={trial.error} {...(isStale(trial.error) && { onRetry: onReload })} />
        <Group justify="space-between">
          <CopyAs recipe={amendment(job, patch)} />
          <Group gap="xs">
            <GoButton variant="default" to="/jobs/$job" params={{ job: job.name }}>
              {t("common:dialog.cancel")}
            </GoButton>
            <Act needs="admin" type="submit" why={why} loading={trial.isPending}>
              {t("edit.save")}
            </Act>
          </Group>
        </Group>
      </Stack>
      <ReviewDialog
        changes={trial.data ? between(job, trial.data) : null}
        job={job.name}
        declaredBy={job.declaredBy}
        error={save.error}
        isSaving={save.isPending}
        onSave={() => save.mutate()}
        onClose={() => {
          trial.reset();
          save.reset();
        }}
      />
    </form>
  );
}

/** Somebody else changed the job since it was opened. */
function isStale(error: unknown): boolean {
  return error instanceof ProblemError && error.problem.status === 412;
}
