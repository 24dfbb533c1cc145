import { Alert, Button, Grid, Group, Stack, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { type ReactNode, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { areAllShown, fieldErrors } from "@/api";
import { Act, EmptyState, ErrorView, Icon, Panel, ScheduleFields, useTextChecks } from "@/parts";
import { circleIn, WorkflowGraph } from "../graph";
import { drawnBy, EXAMPLE, withChange, withNode, withoutNode, type WorkflowDraft } from "./draft";
import { NodeRow } from "./NodeRow";
import { Settings, SETTINGS } from "./Settings";
import classes from "./form.module.css";

interface WorkflowFormProps {
  draft: WorkflowDraft;
  onChange: (draft: WorkflowDraft) => void;
  /** What the server said about what was sent last. */
  error: unknown;
  onSubmit: () => void;
  isSending: boolean;
  submit: string;
  /** A workflow keeps its name. */
  isThere?: boolean;
  aside?: ReactNode;
}

/** A workflow to write: at the right is what will come of it. */
export function WorkflowForm(props: WorkflowFormProps) {
  const { draft, onChange, error, onSubmit, isSending, submit, isThere = false, aside } = props;
  const { t } = useTranslation("workflows");
  const names = Object.fromEntries(draft.nodes.map((node, place) => [`nodes.${place}.name`, ["name", node.name] as const]));
  const checks = useTextChecks({ ...(!isThere && { name: ["name", draft.name] }), ...names, jitter: ["duration", draft.settings.jitter] });
  const errors: Record<string, string> = { ...fieldErrors(error), ...checks };
  const [isJson, setJson] = useState(true);
  const fields = ["name", "cron", "every", "timezone", "nodes", ...SETTINGS, ...Object.keys(errors).filter((field) => field.startsWith("nodes."))];
  return (
    <Grid gap="lg" renderRoot={(root) => <form {...root} noValidate />} onSubmit={(event: React.FormEvent) => event.preventDefault()}>
      <Grid.Col span={{ base: 12, lg: 7 }}>
        <Stack gap="lg">
          <Panel>
            <TextInput
              label={t("form.name")}
              placeholder={EXAMPLE}
              value={draft.name}
              onChange={(event) => onChange({ ...draft, name: event.currentTarget.value })}
              error={errors["name"]}
              disabled={isThere}
              spellCheck={false}
              data-autofocus
            />
            <TextInput
              mt="md"
              label={t("form.title")}
              description={t("form.titleHint")}
              value={draft.settings.title}
              onChange={(event) => onChange({ ...draft, settings: { ...draft.settings, title: event.currentTarget.value } })}
              error={errors["title"]}
              maxLength={200}
            />
          </Panel>
          <Panel title={t("form.nodes")}>
            <NodeRows draft={draft} onChange={onChange} errors={errors} />
          </Panel>
          <Panel title={t("form.when")}>
            <ScheduleFields draft={draft.schedule} onChange={(schedule) => onChange({ ...draft, schedule })} errors={errors} />
          </Panel>
          <Panel title={t("form.settings")}>
            <Settings
              settings={draft.settings}
              onChange={(change) => onChange({ ...draft, settings: { ...draft.settings, ...change } })}
              errors={errors}
              hasSlots={draft.schedule.kind !== "none"}
              onJson={setJson}
            />
          </Panel>
          {!areAllShown(error, fields) && <ErrorView error={error} />}
          <Group justify="flex-end" gap="xs">
            {aside}
            <Act needs="admin" type="submit" loading={isSending} why={isJson ? null : t("form.notJson")} onClick={() => Object.keys(checks).length === 0 && onSubmit()}>
              {submit}
            </Act>
          </Group>
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, lg: 5 }}>
        <Picture draft={draft} />
      </Grid.Col>
    </Grid>
  );
}

function NodeRows({ draft, onChange, errors }: Pick<WorkflowFormProps, "draft" | "onChange"> & { errors: Record<string, string> }) {
  const { t } = useTranslation("workflows");
  const names = [...new Set(draft.nodes.map((node) => node.name.trim()).filter(Boolean))];
  const told = (place: number, field: string): string | undefined =>
    Object.entries(errors).find(([name]) => name === `nodes.${place}.${field}` || name.startsWith(`nodes.${place}.${field}.`))?.[1];
  return (
    <Stack gap="xs">
      <div className={classes.heads} aria-hidden>
        <span>{t("form.nodeName")}</span>
        <span>{t("form.job")}</span>
        <span>{t("form.after")}</span>
        <span>{t("node.triggerRule")}</span>
      </div>
      {draft.nodes.map((node, place) => (
        <NodeRow
          key={node.id}
          node={node}
          place={place + 1}
          others={names.filter((name) => name !== node.name)}
          errors={{ name: told(place, "name"), job: told(place, "job"), after: told(place, "after"), triggerRule: told(place, "triggerRule") }}
          onChange={(change) => onChange(withChange(draft, node, change))}
          onRemove={draft.nodes.length > 1 ? () => onChange(withoutNode(draft, node)) : null}
        />
      ))}
      {errors["nodes"] && (
        <Text size="sm" c="var(--horai-bad)" role="alert">
          {errors["nodes"]}
        </Text>
      )}
      <div>
        <Button variant="default" size="xs" leftSection={<Icon name="plus" size={14} />} onClick={() => onChange(withNode(draft))}>
          {t("form.add")}
        </Button>
      </div>
      <Text size="xs" c="dimmed">
        {t("form.nodesHint")}
      </Text>
    </Stack>
  );
}

function Picture({ draft }: { draft: WorkflowDraft }) {
  const { t } = useTranslation("workflows");
  const [settled] = useDebouncedValue(draft, 200);
  const nodes = useMemo(() => drawnBy(settled), [settled]);
  const circle = circleIn(nodes);
  return (
    <Panel title={t("form.preview")} style={{ position: "sticky", top: 80 }}>
      {circle && (
        <Alert color="red" variant="light" icon={<Icon name="warning" />} mb="sm" p="xs">
          {t("form.circle", { names: circle.join(" → ") })}
        </Alert>
      )}
      {nodes.length > 0 ? (
        <WorkflowGraph nodes={nodes} label={t("form.preview")} isUpright />
      ) : (
        <EmptyState icon="workflows" title={t("form.previewEmpty")}>
          {t("form.previewHint")}
        </EmptyState>
      )}
    </Panel>
  );
}
