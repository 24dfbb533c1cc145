import { Stack, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { FieldChangeOut } from "@/api";
import classes from "./Changes.module.css";

/** What two definitions differ in: each field with its old value and its new one. */
export function Changes({ changes }: { changes: readonly FieldChangeOut[] }) {
  const { t } = useTranslation("definitions");
  if (changes.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        {t("changes.none")}
      </Text>
    );
  }
  return (
    <Stack gap="sm" component="dl" m={0}>
      {changes.map(({ field, before, after }) => (
        <div key={field}>
          <Text component="dt" size="sm" fw={600}>
            {field}
          </Text>
          <dd className={classes.values}>
            <Value mark="−" label={t("changes.before")} className={classes.before!} value={before} none={t("changes.absent")} />
            <Value mark="+" label={t("changes.after")} className={classes.after!} value={after} none={t("changes.absent")} />
          </dd>
        </div>
      ))}
    </Stack>
  );
}

interface ValueProps {
  mark: string;
  label: string;
  className: string;
  value: unknown;
  none: string;
}

function Value({ mark, label, className, value, none }: ValueProps) {
  const text = textOf(value);
  return (
    <pre className={`${classes.value} ${className}`} aria-label={label}>
      <span aria-hidden>{mark} </span>
      {text ?? <i>{none}</i>}
    </pre>
  );
}

function textOf(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
