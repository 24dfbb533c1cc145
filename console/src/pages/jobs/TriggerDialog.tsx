import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { fieldErrors, getInstance, type JobOut, ProblemError, trigger } from "@/api";
import { Act, CopyAs, ErrorView, GoButton, JsonEditor, type OnceHeaders, StateChip, useOnce } from "@/parts";
import { triggering } from "./recipes";

type Payload = { payload?: unknown };

/** The id of the instance that this request has made, now or when it was sent before and its answer got lost. */
async function triggerOnce(job: JobOut, body: Payload, headers: OnceHeaders): Promise<string> {
  try {
    return (await trigger(job.id, body, { headers })).instance.id;
  } catch (error) {
    if (error instanceof ProblemError && error.problem.status === 409 && error.problem.instanceId) {
      return error.problem.instanceId;
    }
    throw error;
  }
}

/** Runs a job now, with its own payload or another, and follows what comes of it. */
export function TriggerDialog({ job, onClose }: { job: JobOut; onClose: () => void }) {
  const { t } = useTranslation(["jobs", "common"]);
  const queries = useQueryClient();
  const [payload, setPayload] = useState<unknown>(job.payload ?? undefined);
  const [isJson, setIsJson] = useState(true);
  const once = useOnce((body: Payload, headers) => triggerOnce(job, body, headers));
  const body: Payload = payload === undefined ? {} : { payload };
  const send = (): void =>
    once.mutate(body, { onSuccess: () => void queries.invalidateQueries({ queryKey: ["instances"] }) });
  return (
    <Modal opened onClose={onClose} title={t("trigger.title", { name: job.name })} size="lg">
      {once.data ? (
        <Triggered id={once.data} onClose={onClose} onAgain={once.reset} />
      ) : (
        <Stack gap="md">
          <Text size="sm">{t(job.status === "PAUSED" ? "trigger.paused" : "trigger.explain")}</Text>
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
            <CopyAs recipe={triggering(job, payload)} />
            <Group gap="xs">
              <Button variant="default" onClick={onClose}>
                {t("common:dialog.cancel")}
              </Button>
              <Act onClick={send} loading={once.isPending} why={isJson ? null : t("form.notJson")}>
                {t("act.trigger")}
              </Act>
            </Group>
          </Group>
        </Stack>
      )}
    </Modal>
  );
}

function Triggered({ id, onClose, onAgain }: { id: string; onClose: () => void; onAgain: () => void }) {
  const { t } = useTranslation("jobs");
  const made = useQuery({ queryKey: ["instances", id], queryFn: ({ signal }) => getInstance(id, { signal }) });
  return (
    <Stack gap="md" role="status">
      <Group gap="sm" mih={28}>
        <Text size="sm">{t("trigger.done", { id })}</Text>
        {made.data && <StateChip state={made.data.state} />}
      </Group>
      {made.data?.errorMsg && (
        <Text size="sm" c="var(--horai-bad)" lineClamp={3} style={{ overflowWrap: "anywhere" }}>
          {made.data.errorMsg}
        </Text>
      )}
      <Group justify="flex-end" gap="xs">
        <Button variant="default" onClick={onAgain}>
          {t("trigger.again")}
        </Button>
        <GoButton variant="default" to="/instances/$instance" params={{ instance: id }} onClick={onClose}>
          {t("trigger.open")}
        </GoButton>
        <Button onClick={onClose}>{t("close")}</Button>
      </Group>
    </Stack>
  );
}
