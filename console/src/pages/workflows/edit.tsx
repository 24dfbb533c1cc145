import { Skeleton } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { getWorkflow, patchWorkflow, type WorkflowOut } from "@/api";
import { CopyAs, Crumb, ErrorView, Go, Page, useDraft } from "@/parts";
import { Restored } from "@/parts/Restored";
import { between } from "@/parts/versions/between";
import { ReviewDialog } from "@/parts/versions/ReviewDialog";
import { pathOf } from "./dialogs";
import { changedBy, draftOf } from "./form/draft";
import { WorkflowForm } from "./form/WorkflowForm";

export default function EditWorkflowPage() {
  const { workflow: name } = useParams({ from: "/workflows/$workflow/edit" });
  const { t } = useTranslation(["workflows", "common", "schedules"]);
  // As it was when the form was opened: what others change meanwhile is told by the version, not overwritten.
  const workflow = useQuery({ queryKey: ["workflow to edit", name], queryFn: ({ signal }) => getWorkflow(name, { signal }), staleTime: Infinity, gcTime: 0 });
  return (
    <Page
      title={t("edit.title", { name })}
      above={
        <Crumb>
          <Go to="/workflows/$workflow" params={{ workflow: name }} size="sm">
            {name}
          </Go>
        </Crumb>
      }
      lead={t("edit.lead")}
    >
      <ErrorView error={workflow.error} />
      {workflow.data && <Form workflow={workflow.data} />}
      {workflow.isPending && <Skeleton height={480} />}
    </Page>
  );
}

function Form({ workflow }: { workflow: WorkflowOut }) {
  const { t } = useTranslation("workflows");
  const [before] = useState(() => draftOf(workflow));
  const kept = useDraft(`workflow ${workflow.id} ${workflow.version}`, before);
  const { draft } = kept;
  const navigate = useNavigate();
  const queries = useQueryClient();
  const body = changedBy(draft, before);
  const seen = { headers: { "If-Match": `"${workflow.version}"` } };
  const trial = useMutation({ mutationFn: () => patchWorkflow(workflow.id, body, { dryRun: true }, seen) });
  const change = useMutation({
    mutationFn: () => patchWorkflow(workflow.id, body, undefined, seen),
    onSuccess: () => {
      kept.forget();
      void queries.invalidateQueries({ queryKey: ["workflows"] });
      void navigate({ to: "/workflows/$workflow", params: { workflow: workflow.name } });
    },
  });
  return (
    <>
      <Restored draft={kept} />
    <WorkflowForm
      key={kept.revision}
      draft={draft}
      onChange={kept.change}
      isThere
      error={trial.error}
      isSending={trial.isPending}
      submit={t("edit.submit")}
      aside={<CopyAs recipe={{ method: "PATCH", path: pathOf(workflow.name), body }} />}
      onSubmit={() => trial.mutate()}
    />
      <ReviewDialog
        changes={trial.data ? between(workflow, trial.data) : null}
        job={workflow.name}
        declaredBy={workflow.declaredBy}
        error={change.error}
        isSaving={change.isPending}
        onSave={() => change.mutate()}
        onClose={() => {
          trial.reset();
          change.reset();
        }}
      />
    </>
  );
}
