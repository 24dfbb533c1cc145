import { Skeleton, Stack, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { FireOut } from "@/api";
import { Panel } from "@/parts";
import { Fires } from "../Fires";
import { isRepeating, type JobDraft } from "./draft";

interface PreviewProps {
  draft: JobDraft;
  fires: readonly FireOut[] | undefined;
  isAsked: boolean;
  isWrong: boolean;
}

/** The next fires of what is being typed, before anything is saved. */
export function Preview({ draft, fires, isAsked, isWrong }: PreviewProps) {
  const { t } = useTranslation("jobs");
  const zone = draft.timezone || "UTC";
  return (
    <Panel title={t("fires.title")} aside={isRepeating(draft) && <Text size="sm" c="dimmed">{zone}</Text>} mih={200}>
      {!isAsked || isWrong ? (
        <Text size="sm" c="dimmed">
          {t(isWrong ? "fires.wrong" : isRepeating(draft) ? "fires.type" : `fires.${draft.when as "manual"}`)}
        </Text>
      ) : fires ? (
        fires.length > 0 ? <Fires fires={fires} zone={zone} /> : <Text size="sm">{t("fires.none")}</Text>
      ) : (
        <Stack gap="xs">
          {Array.from({ length: 6 }, (_, line) => (
            <Skeleton key={line} height={28} />
          ))}
        </Stack>
      )}
    </Panel>
  );
}
