import { Alert, Button, FileButton, Group, MultiSelect, Stack, Text, Textarea } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApplyAnswer } from "@/api";
import { Act, Command, CopyAs, ErrorView, Icon, Page, Panel, useDraft, useFilters } from "@/parts";
import { save } from "@/parts/files";
import { Restored } from "@/parts/Restored";
import classes from "./definitions.module.css";
import { Fates } from "./Fates";
import { applied, exported, KINDS, type KindName } from "./files";
import { applying } from "./recipes";
import { load, YamlFault, type YamlDocument } from "./yaml";

const LINKED = ["kind", "name"] as const;

/** Definitions as YAML: written, checked against the server, applied; exported from it. */
export default function DefinitionsPage() {
  const { t } = useTranslation(["definitions", "common"]);
  const kept = useDraft("definitions", { text: "" });
  const { text } = kept.draft;
  const [checked, setChecked] = useState<{ text: string; documents: YamlDocument[]; answer: ApplyAnswer } | null>(null);
  const queries = useQueryClient();
  const write = (next: string): void => kept.change({ text: next });
  const reading = readText(text);
  const fault = reading instanceof YamlFault ? reading : null;
  const documents = reading instanceof YamlFault ? [] : reading;
  const check = useMutation({
    mutationFn: () => applied(documents, true),
    onSuccess: (answer) => setChecked({ text, documents, answer }),
  });
  const apply = useMutation({
    mutationFn: () => applied(documents, false),
    onSuccess: async (answer) => {
      setChecked({ text, documents, answer });
      await queries.invalidateQueries();
      const refused = answer.items.filter((item) => item.action === "refused").length;
      notifications.show({ message: t("apply.done", { count: answer.items.length - refused }) });
    },
  });
  const isFresh = checked?.text === text && checked.answer.dryRun;
  const writes = checked?.answer.items.some((item) => item.action === "created" || item.action === "changed") ?? false;
  const nothing = fault ? t("fault.fix") : documents.length === 0 ? t("editor.empty") : null;
  return (
    <Page title={t("common:page.definitions")} lead={t("lead")} actions={<OpenFiles onText={(more) => write(joined(text, more))} />}>
      <Restored draft={kept} />
      <div className={classes.columns}>
        <Panel title={t("editor.title")}>
          <Stack gap="sm">
            <Editor text={text} onChange={write} fault={fault} />
            <Group justify="space-between">
              <Button
                variant="default"
                disabled={text === ""}
                leftSection={<Icon name="download" size={16} />}
                onClick={() => save("definitions.yaml", "application/yaml", text)}
              >
                {t("editor.download")}
              </Button>
              <Group gap="xs">
                {nothing === null && <CopyAs recipe={applying(text, documents)} />}
                <Act needs="admin" variant="default" why={nothing} loading={check.isPending} onClick={() => check.mutate()}>
                  {t("check.act")}
                </Act>
                <Act
                  needs="admin"
                  why={nothing ?? (isFresh ? (writes ? null : t("apply.nothing")) : t("apply.checkFirst"))}
                  loading={apply.isPending}
                  onClick={() => apply.mutate()}
                >
                  {t("apply.act")}
                </Act>
              </Group>
            </Group>
            <ErrorView error={check.error ?? apply.error} />
          </Stack>
        </Panel>
        <Stack gap="lg">
          <Export onText={write} text={text} />
          {checked && <Fates answer={checked.answer} documents={checked.documents} isOutdated={checked.text !== text} />}
          <Panel title={t("cli.title")}>
            <Stack gap="xs">
              <Text size="sm">{t("cli.explain")}</Text>
              <Command text="horai definitions > definitions.yaml" />
              <Command text="horai apply -f definitions.yaml --dry-run" />
              <Command text="horai schema > horai.schema.json" />
            </Stack>
          </Panel>
        </Stack>
      </div>
    </Page>
  );
}

function readText(text: string): YamlDocument[] | YamlFault {
  try {
    return load(text);
  } catch (caught) {
    return caught instanceof YamlFault ? caught : new YamlFault("syntax", 1, String(caught));
  }
}

function joined(text: string, more: string): string {
  return text.trim() === "" ? more : `${text.trimEnd()}\n---\n${more}`;
}

function Editor({ text, onChange, fault }: { text: string; onChange: (text: string) => void; fault: YamlFault | null }) {
  const { t } = useTranslation("definitions");
  const lines = useRef<HTMLPreElement>(null);
  const count = text.split("\n").length;
  return (
    <>
      <div className={classes.editor}>
        <pre className={classes.lines} aria-hidden ref={lines}>
          {Array.from({ length: count }, (_, place) => `${place + 1}${fault?.line === place + 1 ? " ●" : ""}`).join("\n")}
        </pre>
        <Textarea
          aria-label={t("editor.label")}
          value={text}
          onChange={(event) => onChange(event.currentTarget.value)}
          onScroll={(event) => lines.current?.scrollTo(0, event.currentTarget.scrollTop)}
          spellCheck={false}
          wrap="off"
          rows={24}
          placeholder={"kind: job\nname: report\ncron: 0 9 * * *"}
          classNames={{ root: classes.area!, input: classes.input! }}
        />
      </div>
      {fault && (
        <Alert color="red" icon={<Icon name="warning" />} p="xs" role="alert">
          {t("fault.line", { line: fault.line })} {fault.reason === "syntax" ? fault.detail : t(`fault.${fault.reason}`)}
        </Alert>
      )}
    </>
  );
}

function OpenFiles({ onText }: { onText: (text: string) => void }) {
  const { t } = useTranslation("definitions");
  const read = async (files: File[]): Promise<void> => {
    const texts = await Promise.all(files.map((file) => file.text()));
    onText(texts.map((each) => each.trim()).join("\n---\n") + "\n");
  };
  return (
    <FileButton accept=".yaml,.yml,.json" multiple onChange={(files) => void read(files)}>
      {(props) => (
        <Button {...props} variant="default">
          {t("open")}
        </Button>
      )}
    </FileButton>
  );
}

/** Writes definitions of the server into the editor: those of some kinds, or the one of the address. */
function Export({ onText, text }: { onText: (text: string) => void; text: string }) {
  const { t } = useTranslation("definitions");
  const [linked, setLinked] = useFilters(LINKED);
  const [kinds, setKinds] = useState<string[]>([...KINDS]);
  const exporting = useMutation({
    mutationFn: ({ of, name }: { of: readonly KindName[]; name?: string }) => exported(of, name),
    onSuccess: onText,
  });
  const { mutate } = exporting;
  const { kind, name } = linked;
  useEffect(() => {
    if (kind && name) {
      mutate({ of: [kind as KindName], name });
      setLinked({ kind: undefined, name: undefined });
    }
  }, [kind, name, mutate, setLinked]);
  return (
    <Panel title={t("export.title")}>
      <Stack gap="sm">
        <Text size="sm">{t("export.explain")}</Text>
        <MultiSelect
          label={t("export.kinds")}
          data={KINDS.map((value) => ({ value, label: t(`kind.${value}`) }))}
          value={kinds}
          onChange={setKinds}
        />
        <ErrorView error={exporting.error} />
        <div>
          <Button
            variant="default"
            loading={exporting.isPending}
            disabled={kinds.length === 0}
            onClick={() => exporting.mutate({ of: KINDS.filter((each) => kinds.includes(each)) })}
          >
            {text.trim() === "" ? t("export.act") : t("export.replace")}
          </Button>
        </div>
      </Stack>
    </Panel>
  );
}
