import { useTranslation } from "react-i18next";
import { type ArchiveFileOut, restoreArchivedDay } from "@/api";
import { BulkDialog } from "@/parts/BulkDialog";
import type { Tally } from "@/parts/useWork";

/** Copies the instances of a day into a table beside the history, request by request. */
export function RestoreDialog({ file, onClose }: { file: ArchiveFileOut; onClose: () => void }) {
  const { t } = useTranslation("archive");
  return (
    <BulkDialog
      title={t("restore.title", { day: file.day })}
      explain={t("restore.explain")}
      count={{ key: ["archive", file.id], ask: async () => ({ matched: file.rows, more: false }) }}
      counted={(count, number) => t("restore.counted", { count, number })}
      done={(count, number) => t("restore.done", { count, number })}
      nothing={t("day.emptyHint")}
      confirm={t("restore.confirm")}
      needs="admin"
      recipe={{ method: "POST", path: `/api/v1/archive/restored/${file.day}`, cli: `horai archive restore ${file.day}` }}
      topics={["archive"]}
      begin={() => restoring(file.day)}
      onClose={onClose}
    />
  );
}

/** A request works for a limited time: asked again until all are there. */
async function* restoring(day: string): AsyncGenerator<Tally> {
  for (let isComplete = false; !isComplete; ) {
    const { restored, complete } = await restoreArchivedDay(day);
    isComplete = complete;
    yield { done: restored, left: 0 };
  }
}
