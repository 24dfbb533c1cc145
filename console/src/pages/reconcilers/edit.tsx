import { Skeleton } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { getReconciler, patchReconciler, type ReconcilerOut } from "@/api";
import { CopyAs, Crumb, ErrorView, Go, Page } from "@/parts";
import { changedBy, draftOf } from "./draft";
import { reconcilerChange } from "./recipes";
import { ReconcilerForm } from "./ReconcilerForm";

export default function EditReconcilerPage() {
  const { reconciler: name } = useParams({ from: "/reconcilers/$reconciler/edit" });
  const { t } = useTranslation(["reconcilers", "common", "schedules"]);
  // As it was when the form was opened: what others change meanwhile is told by the version, not overwritten.
  const found = useQuery({ queryKey: ["reconciler to edit", name], queryFn: ({ signal }) => getReconciler(name, { signal }), staleTime: Infinity, gcTime: 0 });
  return (
    <Page
      title={t("edit.title", { name })}
      lead={t("edit.lead")}
      above={
        <Crumb>
          <Go to="/reconcilers/$reconciler" params={{ reconciler: name }} size="sm">
            {name}
          </Go>
        </Crumb>
      }
    >
      <ErrorView error={found.error} />
      {found.data && <Form reconciler={found.data} />}
      {found.isPending && <Skeleton height={480} />}
    </Page>
  );
}

function Form({ reconciler }: { reconciler: ReconcilerOut }) {
  const { t } = useTranslation("reconcilers");
  const [before] = useState(() => draftOf(reconciler));
  const [draft, setDraft] = useState(before);
  const navigate = useNavigate();
  const queries = useQueryClient();
  const body = changedBy(draft, before);
  const change = useMutation({
    mutationFn: () => patchReconciler(reconciler.id, body, { headers: { "If-Match": `"${reconciler.version}"` } }),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ["reconcilers"] });
      void navigate({ to: "/reconcilers/$reconciler", params: { reconciler: reconciler.name } });
    },
  });
  return (
    <ReconcilerForm
      draft={draft}
      onChange={setDraft}
      isThere
      error={change.error}
      isSending={change.isPending}
      submit={t("edit.submit")}
      aside={<CopyAs recipe={reconcilerChange(reconciler.name, body)} />}
      onSubmit={() => change.mutate()}
    />
  );
}
