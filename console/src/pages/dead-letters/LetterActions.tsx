import { notifications } from "@mantine/notifications";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { discardLetter, type LetterDetail, replayLetter } from "@/api";
import { Act, ConfirmDialog, Icon } from "@/parts";

/** Replays a letter, or settles it without; only one that is open can be settled. */
export function LetterActions({ letter }: { letter: LetterDetail }) {
  const { t } = useTranslation(["dead-letters", "common"]);
  const queries = useQueryClient();
  const [open, setOpen] = useState<"replay" | "discard" | null>(null);
  const settled = letter.replayStatus === "NEW" ? null : t(`settled.${letter.replayStatus}`);
  const outdate = () => queries.invalidateQueries({ queryKey: ["dead-letters"] });
  return (
    <>
      <Act
        leftSection={<Icon name="replay" size={16} />}
        why={settled ?? (letter.instance ? null : t("letter.gone"))}
        onClick={() => setOpen("replay")}
      >
        {t("replay.open")}
      </Act>
      <Act variant="default" leftSection={<Icon name="trash" size={16} />} why={settled} onClick={() => setOpen("discard")}>
        {t("discard.open")}
      </Act>
      <ConfirmDialog
        opened={open === "replay"}
        onClose={() => setOpen(null)}
        title={t("replay.oneTitle")}
        confirm={t("replay.do")}
        recipe={{ method: "POST", path: `/api/v1/dlq/${letter.id}/replay`, cli: `horai dlq replay ${letter.id}` }}
        onConfirm={async () => {
          const told = await replayLetter(letter.id);
          notifications.show({ message: t(told.replayed ? "replay.doneOne" : "replay.notDone") });
          await outdate();
        }}
      >
        {t("replay.oneExplain")}
      </ConfirmDialog>
      <ConfirmDialog
        opened={open === "discard"}
        onClose={() => setOpen(null)}
        title={t("discard.title")}
        confirm={t("discard.do")}
        isDangerous
        note={{ label: t("discard.reason"), isRequired: true, field: "reason" }}
        recipe={{ method: "POST", path: `/api/v1/dlq/${letter.id}/discard`, cli: `horai dlq discard ${letter.id}` }}
        onConfirm={async (reason) => {
          await discardLetter(letter.id, { reason });
          await outdate();
        }}
      >
        {t("discard.explain")}
      </ConfirmDialog>
    </>
  );
}
