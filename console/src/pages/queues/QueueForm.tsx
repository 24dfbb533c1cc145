import { Button, Group, Modal, NumberInput, Select, Stack, Switch, Textarea, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { areAllShown, fieldErrors, putQueue, type QueueIn, type QueueOut } from "@/api";
import { Act, CheckedForm, CopyAs, ErrorView, useDraft, useTextChecks } from "@/parts";
import { Restored } from "@/parts/Restored";
import { between } from "@/parts/versions/between";
import { ReviewDialog } from "@/parts/versions/ReviewDialog";
import { setting } from "./recipes";
import { tagOf, wishOf } from "./settings";

const PRIORITIES = ["core", "high", "normal", "low"] as const;
const FIELDS = ["name", "priority", "maxConcurrency", "rate", "title", "owner", "description"];

interface QueueDraft {
  name: string;
  wish: QueueIn;
}

/** What a queue allows, to be changed; or a new one. */
export function QueueForm({ queue, onClose }: { queue: QueueOut | "new" | null; onClose: () => void }) {
  const { t } = useTranslation(["queues", "common"]);
  const title = queue === "new" ? t("form.newTitle") : t("form.title", { name: queue?.name });
  return (
    <Modal opened={queue !== null} onClose={onClose} title={title}>
      {queue && <Form queue={queue === "new" ? null : queue} onClose={onClose} />}
    </Modal>
  );
}

function Form({ queue, onClose }: { queue: QueueOut | null; onClose: () => void }) {
  const { t } = useTranslation(["queues", "common"]);
  const queries = useQueryClient();
  const start: QueueDraft = { name: queue?.name ?? "", wish: queue ? wishOf(queue) : { priority: "normal", paused: false } };
  const kept = useDraft(queue ? `queue ${queue.name} ${queue.version}` : "new queue", start);
  const { name, wish } = kept.draft;
  const put = useMutation({
    mutationFn: () => putQueue(name, wish, undefined, queue ? { headers: tagOf(queue) } : undefined),
    onSuccess: async () => {
      kept.forget();
      await queries.invalidateQueries({ queryKey: ["queues"] });
      onClose();
    },
  });
  const trial = useMutation({ mutationFn: (seen: QueueOut) => putQueue(name, wish, { dryRun: true }, { headers: tagOf(seen) }) });
  const problem = trial.error ?? put.error;
  const checks = useTextChecks({ ...(!queue && { name: ["name", name] }), rate: ["rate", wish.rate] });
  const faults = { ...fieldErrors(problem), ...checks };
  const change = (part: Partial<QueueIn>) => kept.change((before) => ({ ...before, wish: { ...before.wish, ...part } }));
  return (
    <CheckedForm required={{ name }} checks={checks} onSubmit={() => (queue ? trial.mutate(queue) : put.mutate())}>
      {(own) => (
        <>
          <Stack gap="md">
            <Restored draft={kept} />
            {!queue && (
              <TextInput
                label={t("form.name")}
                required
                value={name}
                onChange={(event) => kept.change((before) => ({ ...before, name: event.target.value }))}
                error={own["name"] ?? faults["name"]}
                data-autofocus
              />
            )}
            <Select
              label={t("column.priority")}
              description={t("form.priorityHint")}
              allowDeselect={false}
              data={PRIORITIES.map((value) => ({ value, label: t(`common:priority.${value}`) }))}
              value={wish.priority ?? "normal"}
              onChange={(priority) => change({ priority: priority as QueueIn["priority"] })}
              error={faults["priority"]}
            />
            <NumberInput
              label={t("form.maxConcurrency")}
              description={t("form.maxConcurrencyHint")}
              placeholder={t("queues.unlimited")}
              allowDecimal={false}
              value={wish.maxConcurrency ?? ""}
              onChange={(value) => change({ maxConcurrency: value === "" ? null : Number(value) })}
              error={faults["maxConcurrency"]}
            />
            <TextInput
              label={t("form.rate")}
              description={t("form.rateHint")}
              placeholder={t("queues.unlimited")}
              value={wish.rate ?? ""}
              onChange={(event) => change({ rate: event.currentTarget.value || null })}
              error={faults["rate"]}
            />
            <TextInput
              label={t("form.label")}
              description={t("form.labelHint")}
              value={wish.title ?? ""}
              onChange={(event) => change({ title: event.currentTarget.value || null })}
              error={faults["title"]}
              maxLength={200}
            />
            <TextInput
              label={t("form.owner")}
              description={t("form.ownerHint")}
              value={wish.owner ?? ""}
              onChange={(event) => change({ owner: event.currentTarget.value || null })}
              error={faults["owner"]}
              maxLength={200}
            />
            <Textarea
              label={t("form.description")}
              value={wish.description ?? ""}
              onChange={(event) => change({ description: event.currentTarget.value || null })}
              error={faults["description"]}
              autosize
              maxRows={6}
              maxLength={4_000}
            />
            <Switch
              label={t("queues.paused")}
              checked={wish.paused ?? false}
              onChange={(event) => change({ paused: event.currentTarget.checked })}
            />
            {!areAllShown(problem, FIELDS) && <ErrorView error={problem} />}
            <Group justify="space-between">
              <CopyAs recipe={setting(name, wish)} />
              <Group gap="xs">
                <Button variant="default" onClick={onClose}>
                  {t("common:dialog.cancel")}
                </Button>
                <Act needs="admin" type="submit" loading={put.isPending || trial.isPending} why={name.trim() === "" ? t("form.nameMissing") : null}>
                  {t("form.save")}
                </Act>
              </Group>
            </Group>
          </Stack>
          <ReviewDialog
            changes={queue && trial.data ? between(queue, trial.data) : null}
            error={put.error}
            isSaving={put.isPending}
            onSave={() => put.mutate()}
            onClose={() => {
              trial.reset();
              put.reset();
            }}
          />
        </>
      )}
    </CheckedForm>
  );
}
