import { Button, type ButtonProps, Tooltip } from "@mantine/core";
import type { ButtonHTMLAttributes } from "react";
import { useTranslation } from "react-i18next";
import { useReadOnly } from "@/live";

interface ActProps extends ButtonProps, Omit<ButtonHTMLAttributes<HTMLButtonElement>, keyof ButtonProps> {
  /** Why it cannot be done now; null when it can. */
  why?: string | null | undefined;
}

/** A button that changes something. While that is not possible it stays, disabled, and says why. */
export function Act({ why, onClick, ...rest }: ActProps) {
  const { t } = useTranslation();
  const isReadOnly = useReadOnly();
  const reason = isReadOnly ? t("readOnly.reason") : why;
  if (!reason) {
    return <Button onClick={onClick} {...rest} />;
  }
  return (
    <Tooltip label={reason} multiline maw={320}>
      <Button {...rest} type="button" data-disabled aria-disabled onClick={(event) => event.preventDefault()} />
    </Tooltip>
  );
}
