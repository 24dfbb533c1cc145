import { type ReactNode, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";

const NOTHING: Record<string, string> = {};

interface CheckedFormProps {
  /** The values that must not be empty, by field. */
  required?: Readonly<Record<string, unknown>>;
  /** The faults of what is typed, by field: nothing is sent while there are any. */
  checks?: Record<string, string>;
  onSubmit: () => void;
  /** Draws the fields with the faults that need no server. */
  children: (faults: Record<string, string>) => ReactNode;
}

/** A form that says itself what is missing, at the field: the browser would say it in its own language. */
export function CheckedForm({ required = NOTHING, checks = NOTHING, onSubmit, children }: CheckedFormProps) {
  const { t } = useTranslation();
  const form = useRef<HTMLFormElement>(null);
  const [refused, refuse] = useState(0);
  const empty = Object.entries(required).flatMap(([field, value]) => (isEmpty(value) ? [[field, t("field.required")] as const] : []));
  useEffect(() => {
    if (refused > 0) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [refused]);
  return (
    <form
      noValidate
      ref={form}
      onSubmit={(event) => {
        event.preventDefault();
        if (empty.length === 0 && Object.keys(checks).length === 0) onSubmit();
        else refuse((times) => times + 1);
      }}
    >
      {children({ ...(refused > 0 && Object.fromEntries(empty)), ...checks })}
    </form>
  );
}

function isEmpty(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return value === undefined || value === null || (typeof value === "string" && value.trim() === "");
}
