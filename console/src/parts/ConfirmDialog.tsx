import { Button, Group, Modal, Stack, Text, Textarea } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Needs } from "@/live";
import { Act } from "./Act";
import { CopyAs } from "./CopyAs";
import { ErrorView } from "./ErrorView";
import { type Recipe, withNote } from "./recipes";

interface ConfirmDialogProps {
  opened: boolean;
  onClose: () => void;
  title: string;
  /** What will happen, and what will not. */
  children: ReactNode;
  /** The verb on the button. */
  confirm: string;
  isDangerous?: boolean;
  /** Asks for a note or a reason, which is kept with the change. */
  note?: { label: string; isRequired?: boolean; field?: "note" | "reason" };
  /** Does it; the dialog closes when it has worked and shows the problem when not. */
  onConfirm: (note: string) => Promise<unknown>;
  recipe?: Recipe;
  needs?: Needs;
}

/** Asks before something is done that matters. */
export function ConfirmDialog(props: ConfirmDialogProps) {
  return (
    <Modal opened={props.opened} onClose={props.onClose} title={props.title} size="lg">
      {props.opened && <Question {...props} />}
    </Modal>
  );
}

function Question({ onClose, children, confirm, isDangerous, note, onConfirm, recipe, needs }: ConfirmDialogProps) {
  const { t } = useTranslation();
  const [text, setText] = useState("");
  const doing = useMutation({ mutationFn: () => onConfirm(text.trim()), onSuccess: onClose });
  const isMissing = note?.isRequired === true && text.trim() === "";
  return (
    <Stack gap="md">
      <Text component="div" size="sm">
        {children}
      </Text>
      {note && (
        <Textarea
          label={note.label}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          required={note.isRequired ?? false}
          maxLength={2_000}
          data-autofocus
        />
      )}
      <ErrorView error={doing.error} />
      <Group justify="space-between">
        <div>{recipe && <CopyAs recipe={withNote(recipe, note?.field ?? "note", text.trim())} />}</div>
        <Group gap="xs">
          <Button variant="default" onClick={onClose}>
            {t("dialog.cancel")}
          </Button>
          <Act
            {...(needs && { needs })}
            color={isDangerous ? "red" : undefined}
            loading={doing.isPending}
            why={isMissing ? t("dialog.noteMissing") : null}
            onClick={() => doing.mutate()}
          >
            {confirm}
          </Act>
        </Group>
      </Group>
    </Stack>
  );
}
