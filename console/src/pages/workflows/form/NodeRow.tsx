import { ActionIcon, MultiSelect, Select, TextInput } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Icon, JobSelect } from "@/parts";
import type { NodeDraft } from "./draft";
import classes from "./form.module.css";

interface NodeRowProps {
  node: NodeDraft;
  /** From 1 on. */
  place: number;
  /** The names of the others, to wait for. */
  others: readonly string[];
  errors: { name?: string | undefined; job?: string | undefined; after?: string | undefined; triggerRule?: string | undefined };
  onChange: (change: Partial<NodeDraft>) => void;
  onRemove: (() => void) | null;
}

const RULES = ["allSuccess", "allDone", "oneFailed", "noneFailed"] as const;

/** A node of the form: its name, the job it runs, what it waits for, and how that has to end. */
export function NodeRow({ node, place, others, errors, onChange, onRemove }: NodeRowProps) {
  const { t } = useTranslation("workflows");
  return (
    <div className={classes.node} role="group" aria-label={t("form.node", { place })}>
      <TextInput
        aria-label={t("form.nodeName")}
        placeholder={t("form.nodeName")}
        value={node.name}
        onChange={(event) => onChange({ name: event.currentTarget.value })}
        error={errors.name}
        spellCheck={false}
      />
      <JobSelect aria-label={t("form.job")} placeholder={node.name || t("form.job")} value={node.workflow ?? node.job} disabled={node.workflow !== undefined} error={errors.job} onChange={(job) => onChange({ job: job ?? "" })} />
      <MultiSelect
        aria-label={t("form.after")}
        placeholder={node.after.length === 0 ? t("form.afterNone") : ""}
        data={[...others]}
        value={node.after}
        onChange={(after) => onChange({ after })}
        error={errors.after}
        disabled={others.length === 0}
      />
      <Select
        aria-label={t("node.triggerRule")}
        data={RULES.map((value) => ({ value, label: t(`rule.${value}`) }))}
        value={node.after.length === 0 ? "allSuccess" : (node.triggerRule ?? "allSuccess")}
        onChange={(rule) => onChange({ triggerRule: (rule ?? "allSuccess") as (typeof RULES)[number] })}
        allowDeselect={false}
        error={errors.triggerRule}
        disabled={node.after.length === 0}
      />
      <ActionIcon
        variant="subtle"
        color="gray"
        size={36}
        aria-label={t("form.remove", { name: node.name })}
        disabled={onRemove === null}
        onClick={onRemove ?? undefined}
      >
        <Icon name="trash" size={16} />
      </ActionIcon>
    </div>
  );
}
