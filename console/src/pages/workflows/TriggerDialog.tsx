import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { fieldErrors, ProblemError, triggerWorkflow, type TriggerIn, type WorkflowOut } from "@/api";
import { Act, CopyAs, ErrorView, JsonEditor, type OnceHeaders, useOnce } from "@/parts";
import { quoted } from "@/parts/recipes";
import { pathOf } from "./dialogs";

/** The run that this request has started, now or when it was sent before and its answer got lost. */
async function triggerOnce(workflow: WorkflowOut, body: TriggerIn, headers: OnceHeaders): Promise<string> {
  try {
    return (await triggerWorkflow(workflow.id, body, { headers })).run.id;
  } catch (error) {
    if (error instanceof ProblemError && error.problem.status === 409 && error.problem.instanceId) {
      return error.problem.instanceId;
    }
    throw error;
  }
}

/** Starts a run now, with the workflow's payload or another, and leads to it. */
export function TriggerDialog({ workflow, onClose }: { workflow: WorkflowOut; onClose: () => void }) {
  const { t } = useTranslation(["workflows", "common"]);
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [payload, setPayload] = useState<unknown>(workflow.payload ?? undefined);
  const [isJson, setIsJson] = useState(true);
  const once = useOnce((body: TriggerIn, headers) => triggerOnce(workflow, body, headers));
  const body: TriggerIn = payload === undefined ? {} : { payload };
  const cli = `horai workflows trigger ${workflow.name}${payload === undefined ? "" : ` --payload ${quoted(JSON.stringify(payload))}`}`;
  const follow = (run: string): void => {
    void queries.invalidateQueries({ queryKey: ["workflows"] });
    onClose();
    void navigate({ to: "/workflows/$workflow/runs/$run", params: { workflow: workflow.name, run } });
  };
  return (
    <Modal opened onClose={onClose} title={t("trigger.title", { name: workflow.name })} size="lg">
      <Stack gap="md">
        <Text size="sm">{t(workflow.status === "PAUSED" ? "trigger.paused" : "trigger.explain")}</Text>
        <JsonEditor
          label={t("trigger.payload")}
          description={t("trigger.payloadHint")}
          value={payload}
          error={fieldErrors(once.error)["payload"]}
          onChange={(value, isValid) => {
            setPayload(value);
            setIsJson(isValid);
          }}
        />
        <ErrorView error={once.error} />
        <Group justify="space-between">
          <CopyAs recipe={{ method: "POST", path: pathOf(workflow.name, "trigger"), body, isOnce: true, cli }} />
          <Group gap="xs">
            <Button variant="default" onClick={onClose}>
              {t("common:dialog.cancel")}
            </Button>
            <Act onClick={() => once.mutate(body, { onSuccess: follow })} loading={once.isPending} why={isJson ? null : t("form.notJson")}>
              {t("act.trigger")}
            </Act>
          </Group>
        </Group>
      </Stack>
    </Modal>
  );
}
