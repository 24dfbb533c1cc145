import { Skeleton } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { getJob } from "@/api";
import { CreateJobPanel } from "@/panels";
import { ErrorView, Page, useDraft } from "@/parts";
import { Restored } from "@/parts/Restored";
import { Back } from "./Back";
import { draftOf, EMPTY, type JobDraft, jobOf, nameLike } from "./form/draft";
import { JobFields } from "./form/JobFields";
import { useChecks } from "./form/useChecks";

/** A new job, or another one like one that is there (`?like=`). */
export default function NewJobPage() {
  const { t } = useTranslation("jobs");
  const like = (useSearch({ strict: false }) as { like?: string }).like;
  const model = useQuery({
    queryKey: ["jobs", like, "model"],
    queryFn: ({ signal }) => getJob(like ?? "", { signal }),
    enabled: Boolean(like),
    staleTime: Infinity,
  });
  const start = model.data ? { ...draftOf(model.data), name: nameLike(model.data.name) } : EMPTY;
  return (
    <Page title={t("new.title")} lead={like ? t("new.like", { name: like }) : t("new.lead")} above={<Back />}>
      {model.error && <ErrorView error={model.error} onRetry={() => void model.refetch()} />}
      {like && model.isPending ? <Skeleton height={480} /> : <NewJobForm key={like ?? ""} name={`new job ${like ?? ""}`} start={start} />}
    </Page>
  );
}

/** The form of a new job; its draft is kept until it is sent or discarded. */
export function NewJobForm({ name, start }: { name: string; start: JobDraft }) {
  const { t } = useTranslation("jobs");
  const navigate = useNavigate();
  const queries = useQueryClient();
  const kept = useDraft(name, start);
  const { draft } = kept;
  const { faults, check } = useChecks(draft);
  const [isJson, setIsJson] = useState(true);
  const created = async (): Promise<void> => {
    kept.forget();
    notifications.show({ message: t("new.done", { name: draft.name.trim() }) });
    await queries.invalidateQueries({ queryKey: ["jobs"] });
    await navigate({ to: "/jobs/$job", params: { job: draft.name.trim() } });
  };
  return (
    <CreateJobPanel draft={jobOf(draft)} why={isJson ? null : t("form.notJson")} check={check} onCreated={() => void created()}>
      {(errors) => (
        <>
          <Restored draft={kept} />
          <JobFields
            key={kept.revision}
            draft={draft}
            errors={{ ...errors, ...faults }}
            onChange={(change) => kept.change((before) => ({ ...before, ...change }))}
            onPayloadValid={setIsJson}
          />
        </>
      )}
    </CreateJobPanel>
  );
}
