import { Button, Group, Modal, NumberInput, Select, Stack, Switch, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { areAllShown, fieldErrors, putQueue, type QueueIn, type QueueOut } from "@/api";
import { Act, CopyAs, ErrorView } from "@/parts";
import { setting } from "./recipes";
import { tagOf, wishOf } from "./settings";

const PRIORITIES = ["core", "high", "normal", "low"] as const;
const FIELDS = ["name", "priority", "maxConcurrency", "rate"];

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
  const [name, setName] = useState(queue?.name ?? "");
  const [wish, setWish] = useState<QueueIn>(queue ? wishOf(queue) : { priority: "normal", paused: false });
  const put = useMutation({
    mutationFn: () => putQueue(name, wish, queue ? { headers: tagOf(queue) } : undefined),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["queues"] });
      onClose();
    },
  });
  const faults = fieldErrors(put.error);
  const change = (part: Partial<QueueIn>) => setWish((before) => ({ ...before, ...part }));
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        put.mutate();
      }}
    >
      <Stack gap="md">
        {!queue && (
          <TextInput
            label={t("form.name")}
            required
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            error={faults["name"]}
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
        <Switch
          label={t("queues.paused")}
          checked={wish.paused ?? false}
          onChange={(event) => change({ paused: event.currentTarget.checked })}
        />
        {!areAllShown(put.error, FIELDS) && <ErrorView error={put.error} />}
        <Group justify="space-between">
          <CopyAs recipe={setting(name, wish)} />
          <Group gap="xs">
            <Button variant="default" onClick={onClose}>
              {t("common:dialog.cancel")}
            </Button>
            <Act needs="admin" type="submit" loading={put.isPending} why={name.trim() === "" ? t("form.nameMissing") : null}>
              {t("form.save")}
            </Act>
          </Group>
        </Group>
      </Stack>
    </form>
  );
}
