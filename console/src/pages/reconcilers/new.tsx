import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { createReconciler, type ReconcilerIn } from "@/api";
import { CopyAs, Crumb, Go, Page, useDraft, useOnce } from "@/parts";
import { Restored } from "@/parts/Restored";
import { createdBy, EMPTY } from "./draft";
import { reconcilerCreation } from "./recipes";
import { ReconcilerForm } from "./ReconcilerForm";

export default function NewReconcilerPage() {
  const { t } = useTranslation(["reconcilers", "common", "schedules"]);
  const kept = useDraft("new reconciler", EMPTY);
  const navigate = useNavigate();
  const queries = useQueryClient();
  const once = useOnce((body: ReconcilerIn, headers) => createReconciler(body, { headers }));
  const body = createdBy(kept.draft);
  return (
    <Page
      title={t("new.title")}
      lead={t("new.lead")}
      above={
        <Crumb>
          <Go to="/reconcilers" size="sm">
            {t("common:page.reconcilers")}
          </Go>
        </Crumb>
      }
    >
      <Restored draft={kept} />
      <ReconcilerForm
        key={kept.revision}
        draft={kept.draft}
        onChange={kept.change}
        error={once.error}
        isSending={once.isPending}
        submit={t("new.submit")}
        aside={<CopyAs recipe={reconcilerCreation(body)} />}
        onSubmit={() =>
          once.mutate(body, {
            onSuccess: (made) => {
              kept.forget();
              void queries.invalidateQueries({ queryKey: ["reconcilers"] });
              void navigate({ to: "/reconcilers/$reconciler", params: { reconciler: made.name } });
            },
          })
        }
      />
    </Page>
  );
}
