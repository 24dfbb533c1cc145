import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { getLetters, type LetterOut, replayLetter, type RunNodeOut } from "@/api";
import { Act, ConfirmDialog, Icon } from "@/parts";

/** A letter is written in the moment of the death; this much on either side of it is looked through. */
const AROUND_MS = 60_000;

async function letterOf(node: RunNodeOut, signal: AbortSignal): Promise<LetterOut | null> {
  const died = new Date(node.finishedAt ?? 0).getTime();
  const at = (offset: number): string => new Date(died + offset).toISOString();
  const found = await getLetters({ job: node.job, from: at(-AROUND_MS), to: at(AROUND_MS), limit: 500 }, { signal });
  return found.items.find((letter) => letter.instanceId === node.instanceId) ?? null;
}

/** Tries a dead node once more by replaying its letter; what is blocked behind it goes on when it succeeds. */
export function Replay({ node }: { node: RunNodeOut }) {
  const { t } = useTranslation("workflows");
  const queries = useQueryClient();
  const [isAsked, ask] = useState(false);
  const letter = useQuery({ queryKey: ["dead-letters", "of", node.instanceId], queryFn: ({ signal }) => letterOf(node, signal) });
  const why = letter.data === null ? t("replay.noLetter") : letter.data?.replayStatus === "NEW" || !letter.data ? null : t("replay.done");
  return (
    <>
      <Act variant="default" size="xs" why={why} loading={letter.isPending} onClick={() => ask(true)} leftSection={<Icon name="replay" size={14} />}>
        {t("act.replay")}
      </Act>
      <ConfirmDialog
        opened={isAsked}
        onClose={() => ask(false)}
        title={t("replay.title", { name: node.name })}
        confirm={t("act.replay")}
        recipe={{ method: "POST", path: `/api/v1/dlq/${letter.data?.id ?? ""}/replay`, cli: `horai dlq replay ${letter.data?.id ?? ""}` }}
        onConfirm={async () => {
          await replayLetter(letter.data?.id ?? "");
          await queries.invalidateQueries({ queryKey: ["dead-letters"] });
          await queries.invalidateQueries({ queryKey: ["workflows"] });
        }}
      >
        {t("replay.explain")}
      </ConfirmDialog>
    </>
  );
}
