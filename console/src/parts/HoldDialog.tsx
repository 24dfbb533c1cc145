import { useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { ConfirmDialog } from "./ConfirmDialog";
import type { Recipe } from "./recipes";

interface HoldDialogProps {
  act: "pause" | "resume";
  name: string;
  /** What will be held, and what will not. */
  explain: string;
  send: (note: { note?: string }) => Promise<unknown>;
  recipe: Recipe;
  topic: string;
  onClose: () => void;
}

/** Asks before something that fires by itself is held, or let go on; with a note. */
export function HoldDialog({ act, name, explain, send, recipe, topic, onClose }: HoldDialogProps) {
  const { t } = useTranslation("schedules");
  const queries = useQueryClient();
  return (
    <ConfirmDialog
      opened
      onClose={onClose}
      title={t(`${act}.title`, { name })}
      confirm={t(`${act}.act`)}
      note={{ label: t(`${act}.note`) }}
      recipe={recipe}
      onConfirm={async (note) => {
        await send(note ? { note } : {});
        await queries.invalidateQueries({ queryKey: [topic] });
      }}
    >
      {explain}
    </ConfirmDialog>
  );
}
