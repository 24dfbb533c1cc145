import { ActionIcon, MultiSelect, TextInput } from "@mantine/core";
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
  errors: { name?: string | undefined; job?: string | undefined; after?: string | undefined };
  onChange: (change: Partial<NodeDraft>) => void;
  onRemove: (() => void) | null;
}

/** A node of the form: its name, the job it runs, and what it waits for. */
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
      <JobSelect aria-label={t("form.job")} placeholder={node.name || t("form.job")} value={node.job} error={errors.job} onChange={(job) => onChange({ job: job ?? "" })} />
      <MultiSelect
        aria-label={t("form.after")}
        placeholder={node.after.length === 0 ? t("form.afterNone") : ""}
        data={[...others]}
        value={node.after}
        onChange={(after) => onChange({ after })}
        error={errors.after}
        disabled={others.length === 0}
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
