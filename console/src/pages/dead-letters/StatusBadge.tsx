import { Badge } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { LetterOut } from "@/api";

const COLOURS = { NEW: "red", REPLAYED: "teal", SUPERSEDED: "gray", DISCARDED: "gray" } as const;

/** What has become of a letter. */
export function StatusBadge({ status }: { status: LetterOut["replayStatus"] }) {
  const { t } = useTranslation(["dead-letters", "common"]);
  return (
    <Badge variant="light" color={COLOURS[status]} tt="none" fw={500}>
      {t(`status.${status}`)}
    </Badge>
  );
}
