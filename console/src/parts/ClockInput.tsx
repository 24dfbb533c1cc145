import { ActionIcon, TextInput, type TextInputProps } from "@mantine/core";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import classes from "./ClockInput.module.css";
import { Icon } from "./Icon";
import { readLocal } from "./time";

interface ClockInputProps extends Omit<TextInputProps, "value" | "onChange" | "type"> {
  /** `2026-11-15T09:00:05` by whatever clock the caller means, or an empty text. */
  value: string;
  onChange: (local: string) => void;
  /** The day that a time without a date is on: `2026-11-15`. Without it, a date must be typed. */
  today?: string;
}

/** A time as it stands everywhere else, `2026-11-15 09:00:05`: typed, or picked from the browser's own calendar. */
export function ClockInput({ value, onChange, error, today, ...rest }: ClockInputProps) {
  const { t } = useTranslation();
  const picker = useRef<HTMLInputElement>(null);
  const [typed, setTyped] = useState<string | null>(null);
  const [isLeft, setLeft] = useState(true);
  const isOurs = typed !== null && (readLocal(typed, today) ?? "") === value;
  const text = isOurs ? typed : value.replace("T", " ");
  const isUnread = text.trim() !== "" && readLocal(text, today) === null;
  return (
    <TextInput
      {...rest}
      type="text"
      inputMode="numeric"
      autoComplete="off"
      placeholder={rest.placeholder ?? t(today ? "clock.shapeOrTime" : "clock.shape")}
      value={text}
      error={error ?? (isUnread && isLeft ? t(today ? "clock.unreadOrTime" : "clock.unread") : undefined)}
      onFocus={() => setLeft(false)}
      onBlur={() => setLeft(true)}
      onChange={(event) => {
        setTyped(event.currentTarget.value);
        onChange(readLocal(event.currentTarget.value, today) ?? "");
      }}
      rightSection={
        <span className={classes.side}>
          <ActionIcon variant="subtle" color="gray" size="sm" aria-label={t("clock.pick")} tabIndex={-1} onClick={() => picker.current?.showPicker()}>
            <Icon name="calendar" size={16} />
          </ActionIcon>
          <input
            ref={picker}
            type="datetime-local"
            step={1}
            className={classes.picker}
            tabIndex={-1}
            aria-hidden
            value={value}
            onChange={(event) => onChange(readLocal(event.currentTarget.value) ?? "")}
          />
        </span>
      }
    />
  );
}
