import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { createWorkflow, type WorkflowIn } from "@/api";
import { CopyAs, Crumb, Go, Page, useDraft, useOnce } from "@/parts";
import { Restored } from "@/parts/Restored";
import { createdBy, EMPTY } from "./form/draft";
import { WorkflowForm } from "./form/WorkflowForm";
import { workflowCreation } from "./recipes";

export default function NewWorkflowPage() {
  const { t } = useTranslation(["workflows", "common", "schedules"]);
  const kept = useDraft("new workflow", EMPTY);
  const navigate = useNavigate();
  const queries = useQueryClient();
  const once = useOnce((body: WorkflowIn, headers) => createWorkflow(body, { headers }));
  const body = createdBy(kept.draft);
  return (
    <Page
      title={t("new.title")}
      above={
        <Crumb>
          <Go to="/workflows" size="sm">{t("common:page.workflows")}</Go>
        </Crumb>
      }
      lead={t("new.lead")}
    >
      <Restored draft={kept} />
      <WorkflowForm
        key={kept.revision}
        draft={kept.draft}
        onChange={kept.change}
        error={once.error}
        isSending={once.isPending}
        submit={t("new.submit")}
        aside={<CopyAs recipe={workflowCreation(body)} />}
        onSubmit={() =>
          once.mutate(body, {
            onSuccess: (made) => {
              kept.forget();
              void queries.invalidateQueries({ queryKey: ["workflows"] });
              void navigate({ to: "/workflows/$workflow", params: { workflow: made.name } });
            },
          })
        }
      />
    </Page>
  );
}
