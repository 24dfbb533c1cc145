import { Button, FileButton, Group, List, Modal, Stack, Text, Textarea } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { addEntities, type EntityItem, type JobOut } from "@/api";
import { Act, CopyAs, ErrorView, Icon, ProgressBar } from "@/parts";
import { readEntities, type Reading } from "./reading";
import { addition } from "./recipes";

const PORTION = 2_000;
const FAULTS_SHOWN = 5;

interface Sent {
  done: number;
  added: number;
  known: number;
}

/** Adds many entities: pasted, or from a file; in portions, so that it can be seen how far it has come. */
export function ImportEntities({ job, onClose }: { job: JobOut; onClose: () => void }) {
  const { t } = useTranslation(["refresh", "common"]);
  const queries = useQueryClient();
  const [text, setText] = useState("");
  const [sent, setSent] = useState<Sent>({ done: 0, added: 0, known: 0 });
  const reading = useMemo(() => readEntities(text), [text]);
  const importing = useMutation({
    mutationFn: (items: EntityItem[]) => sendAll(job, items, sent.done, setSent),
    onSettled: () => queries.invalidateQueries({ queryKey: ["refresh"] }),
  });
  const take = (typed: string): void => {
    setText(typed);
    setSent({ done: 0, added: 0, known: 0 });
    importing.reset();
  };
  const isBegun = sent.done > 0 || importing.isPending;
  return (
    <Modal opened onClose={onClose} title={t("import.title")} size="xl">
      <Stack gap="md">
        <Text size="sm">{t("import.explain")}</Text>
        <Textarea
          aria-label={t("import.text")}
          placeholder={'key,shelf\nsku-1,7\n\n{"key": "sku-1", "payload": {"shelf": 7}}'}
          value={text}
          onChange={(event) => take(event.currentTarget.value)}
          autosize
          minRows={8}
          maxRows={16}
          spellCheck={false}
          disabled={importing.isPending}
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: "0.8125rem" } }}
        />
        <Faults faults={reading.faults} />
        {isBegun && <ProgressBar label={t("import.title")} done={sent.done} total={reading.items.length} tone={importing.isSuccess ? "done" : "running"} />}
        {importing.isSuccess && <Text size="sm">{t("import.done", { added: sent.added, known: sent.known })}</Text>}
        <ErrorView error={importing.error} />
        <Group justify="space-between">
          <Group gap="xs">
            <FileButton accept=".csv,.jsonl,.ndjson,text/csv" onChange={(file) => void file?.text().then(take)}>
              {(props) => (
                <Button {...props} variant="default" leftSection={<Icon name="download" size={16} />}>
                  {t("import.file")}
                </Button>
              )}
            </FileButton>
            {reading.items.length > 0 && reading.items.length <= PORTION && <CopyAs recipe={addition(job, reading.items)} />}
          </Group>
          <Group gap="xs">
            <Button variant="default" onClick={onClose}>
              {importing.isSuccess ? t("close") : t("common:dialog.cancel")}
            </Button>
            {!importing.isSuccess && (
              <Act why={reading.items.length === 0 ? t("import.nothing") : null} loading={importing.isPending} onClick={() => importing.mutate(reading.items)}>
                {t("import.count", { count: reading.items.length })}
              </Act>
            )}
          </Group>
        </Group>
      </Stack>
    </Modal>
  );
}

/** A portion that failed is where the next try goes on. */
async function sendAll(job: JobOut, items: EntityItem[], from: number, tell: (change: (before: Sent) => Sent) => void): Promise<void> {
  for (let done = from; done < items.length; done += PORTION) {
    const portion = items.slice(done, done + PORTION);
    const { added, known } = await addEntities(job.id, { items: portion });
    tell((before) => ({ done: done + portion.length, added: before.added + added, known: before.known + known }));
  }
}

function Faults({ faults }: { faults: Reading["faults"] }) {
  const { t } = useTranslation("refresh");
  if (faults.length === 0) return null;
  return (
    <div role="status">
      <Text size="sm" c="var(--horai-bad)">
        {t("import.faults", { count: faults.length })}
      </Text>
      <List size="sm">
        {faults.slice(0, FAULTS_SHOWN).map((fault) => (
          <List.Item key={fault.line}>{t(`import.${fault.why}`, { line: fault.line })}</List.Item>
        ))}
      </List>
    </div>
  );
}
