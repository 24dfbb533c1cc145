import { Group, SegmentedControl, SimpleGrid, Stack, Text, Textarea, TextInput } from "@mantine/core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { areAllShown, fieldErrors } from "@/api";
import { Act, ErrorView, JobSelect, Panel, ScheduleFields } from "@/parts";
import { EXAMPLES, type ReconcilerDraft } from "./draft";

interface ReconcilerFormProps {
  draft: ReconcilerDraft;
  onChange: (draft: ReconcilerDraft) => void;
  error: unknown;
  isSending: boolean;
  onSubmit: () => void;
  submit: string;
  /** A reconciler keeps its name and its job. */
  isThere?: boolean;
  aside?: ReactNode;
}

const FIELDS = ["name", "job", "every", "cron", "timezone", "source.query", "source.source", "source.databaseUrl", "source.url", "source.headers"];

/** A reconciler to write. */
export function ReconcilerForm({ draft, onChange, error, isSending, onSubmit, submit, isThere = false, aside }: ReconcilerFormProps) {
  const { t } = useTranslation("reconcilers");
  const errors = fieldErrors(error);
  const change = (part: Partial<ReconcilerDraft>): void => onChange({ ...draft, ...part });
  return (
    <Stack gap="lg" maw={880} renderRoot={(root) => <form {...root} noValidate />} onSubmit={(event: React.FormEvent) => event.preventDefault()}>
      <Panel>
        <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md">
          <TextInput
            label={t("form.name")}
            placeholder={EXAMPLES.name}
            value={draft.name}
            onChange={(event) => change({ name: event.currentTarget.value })}
            error={errors["name"]}
            disabled={isThere}
            spellCheck={false}
          />
          <JobSelect label={t("form.job")} placeholder="" value={draft.job} onChange={(job) => change({ job: job ?? "" })} error={errors["job"]} disabled={isThere} />
        </SimpleGrid>
      </Panel>
      <Panel title={t("source.title")}>
        <Source draft={draft} change={change} errors={errors} isThere={isThere} />
      </Panel>
      <Panel title={t("form.when")}>
        <ScheduleFields draft={draft.schedule} onChange={(schedule) => change({ schedule })} errors={errors} />
      </Panel>
      {!areAllShown(error, FIELDS) && <ErrorView error={error} />}
      <Group justify="flex-end" gap="xs">
        {aside}
        <Act needs="admin" type="submit" loading={isSending} onClick={onSubmit}>
          {submit}
        </Act>
      </Group>
    </Stack>
  );
}

interface SourceProps {
  draft: ReconcilerDraft;
  change: (part: Partial<ReconcilerDraft>) => void;
  errors: Record<string, string>;
  isThere: boolean;
}

function Source(props: SourceProps) {
  const { draft, change, isThere } = props;
  const { t } = useTranslation("reconcilers");
  return (
    <Stack gap="md">
      <SegmentedControl
        aria-label={t("source.type")}
        value={draft.type}
        onChange={(type) => change({ type: type as ReconcilerDraft["type"] })}
        data={[
          { value: "sql", label: t("form.sql") },
          { value: "http", label: t("form.http") },
        ]}
      />
      <Text size="sm" c="dimmed">
        {t(draft.type === "sql" ? "form.sqlHint" : "form.httpHint")} {isThere && t("form.secretsHint")}
      </Text>
      {draft.type === "sql" ? <SqlSource {...props} /> : <HttpSource {...props} />}
    </Stack>
  );
}

const CODE = { input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: "0.8125rem" } };

function SqlSource({ draft, change, errors }: SourceProps) {
  const { t } = useTranslation("reconcilers");
  return (
    <>
      <Textarea
        label={t("source.query")}
        value={draft.query}
        onChange={(event) => change({ query: event.currentTarget.value })}
        error={errors["source.query"]}
        autosize
        minRows={4}
        maxRows={16}
        spellCheck={false}
        styles={CODE}
      />
      <Group align="flex-end" gap="md" wrap="nowrap">
        <SegmentedControl
          aria-label={t("form.database")}
          value={draft.isByName ? "name" : "url"}
          onChange={(value) => change({ isByName: value === "name" })}
          data={[
            { value: "name", label: t("form.byName") },
            { value: "url", label: t("form.byUrl") },
          ]}
        />
        {draft.isByName ? (
          <TextInput
            flex={1}
            label={t("source.source")}
            placeholder={EXAMPLES.source}
            value={draft.source}
            onChange={(event) => change({ source: event.currentTarget.value })}
            error={errors["source.source"]}
            spellCheck={false}
          />
        ) : (
          <TextInput
            flex={1}
            label={t("source.databaseUrl")}
            placeholder={EXAMPLES.databaseUrl}
            value={draft.databaseUrl}
            onChange={(event) => change({ databaseUrl: event.currentTarget.value })}
            error={errors["source.databaseUrl"] ?? errors["source.source"]}
            spellCheck={false}
            autoComplete="off"
          />
        )}
      </Group>
    </>
  );
}

function HttpSource({ draft, change, errors }: SourceProps) {
  const { t } = useTranslation("reconcilers");
  return (
    <>
      <TextInput
        label={t("source.url")}
        placeholder={EXAMPLES.url}
        value={draft.url}
        onChange={(event) => change({ url: event.currentTarget.value })}
        error={errors["source.url"]}
        spellCheck={false}
      />
      <Textarea
        label={t("form.headers")}
        description={t("form.headersHint")}
        placeholder={EXAMPLES.headers}
        value={draft.headers}
        onChange={(event) => change({ headers: event.currentTarget.value })}
        error={errors["source.headers"]}
        autosize
        minRows={2}
        spellCheck={false}
        styles={CODE}
      />
    </>
  );
}
