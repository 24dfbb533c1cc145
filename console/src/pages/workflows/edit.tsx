import { Skeleton } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { getWorkflow, patchWorkflow, type WorkflowOut } from "@/api";
import { CopyAs, Crumb, ErrorView, Go, Page } from "@/parts";
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
  const [draft, setDraft] = useState(before);
  const navigate = useNavigate();
  const queries = useQueryClient();
  const body = changedBy(draft, before);
  const change = useMutation({
    mutationFn: () => patchWorkflow(workflow.id, body, { headers: { "If-Match": `"${workflow.version}"` } }),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ["workflows"] });
      void navigate({ to: "/workflows/$workflow", params: { workflow: workflow.name } });
    },
  });
  return (
    <WorkflowForm
      draft={draft}
      onChange={setDraft}
      isThere
      error={change.error}
      isSending={change.isPending}
      submit={t("edit.submit")}
      aside={<CopyAs recipe={{ method: "PATCH", path: pathOf(workflow.name), body }} />}
      onSubmit={() => change.mutate()}
    />
  );
}
