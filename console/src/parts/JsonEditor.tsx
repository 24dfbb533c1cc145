import { Textarea, type TextareaProps } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { parseExactly } from "@/api";

interface JsonEditorProps extends Omit<TextareaProps, "value" | "onChange"> {
  /** Undefined is an empty editor: no value at all. */
  value: unknown;
  /** Called with every text that is JSON; `undefined` for an empty one. `isValid` is false in between. */
  onChange: (value: unknown, isValid: boolean) => void;
}

/** A JSON value to write; what is not JSON is said at the field, with its place. */
export function JsonEditor({ value, onChange, error, ...rest }: JsonEditorProps) {
  const { t } = useTranslation();
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value, null, 2));
  const [fault, setFault] = useState<string | null>(null);

  function take(typed: string): void {
    setText(typed);
    try {
      onChange(typed.trim() === "" ? undefined : parseExactly(typed), true);
      setFault(null);
    } catch (caught) {
      setFault(t("json.invalid", { reason: (caught as Error).message }));
      onChange(undefined, false);
    }
  }

  return (
    <Textarea
      autosize
      minRows={3}
      maxRows={16}
      spellCheck={false}
      styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: "0.8125rem" } }}
      {...rest}
      value={text}
      onChange={(event) => take(event.currentTarget.value)}
      error={fault ?? error}
    />
  );
}
