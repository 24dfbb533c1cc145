import { useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { putQueue, type QueueOut } from "@/api";
import { ConfirmDialog } from "@/parts";
import { holding } from "./recipes";
import { tagOf, wishOf } from "./settings";

/** Asks before a queue is paused, or resumed if it is. */
export function PauseQueue({ queue, onClose }: { queue: QueueOut | null; onClose: () => void }) {
  const { t } = useTranslation(["queues", "common"]);
  const queries = useQueryClient();
  const verb = queue?.paused ? "resume" : "pause";
  return (
    <ConfirmDialog
      opened={queue !== null}
      onClose={onClose}
      title={t(`pause.${verb}Title`, { name: queue?.name })}
      confirm={t(`pause.${verb}`)}
      needs="admin"
      {...(queue && { recipe: holding(queue) })}
      {...(verb === "pause" && { note: { label: t("pause.note") } })}
      onConfirm={async (note) => {
        if (!queue) return;
        await putQueue(queue.name, { ...wishOf(queue), paused: !queue.paused, note: note || null }, undefined, { headers: tagOf(queue) });
        await queries.invalidateQueries({ queryKey: ["queues"] });
      }}
    >
      {t(`pause.${verb}Explain`)}
    </ConfirmDialog>
  );
}
