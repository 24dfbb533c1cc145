import { useState } from "react";
import { useTranslation } from "react-i18next";
import { deleteJobs, type DeleteManyIn, type JobBulkAnswer, triggerJobs, type TriggerManyIn } from "@/api";
import { wordsOf } from "@/i18n";
import { JsonEditor } from "@/parts";
import { BulkDialog } from "@/parts/BulkDialog";
import { freshKey } from "@/parts/once";
import { RateInput } from "@/parts/RateInput";
import { plus, type Skipped, skippedBy, type Tally } from "@/parts/useWork";
import { doingMany } from "./recipes";

export type OnceVerb = "trigger" | "delete";

/** The jobs by name, or all that match a filter. */
export interface OnceJobs {
  verb: OnceVerb;
  only: DeleteManyIn;
}

/** So many at a time: often enough to be seen, and to be stopped; a request with a key ends after 2 s. */
const PORTION = 100;
const COUNTED = 10_000;

/** Runs or deletes the jobs that were selected, or all that match. */
export function RunManyDialog({ verb, only, onClose }: OnceJobs & { onClose: () => void }) {
  const { t } = useTranslation(["jobs", "common"]);
  const [written, write] = useState("");
  const [payload, setPayload] = useState<unknown>();
  const [isJson, setIsJson] = useState(true);
  const rate = written.trim();
  const isRun = verb === "trigger";
  const wish: TriggerManyIn = { ...only, ...(isRun && payload !== undefined && { payload }), ...(isRun && rate && { rate }) };
  return (
    <BulkDialog
      title={t(`${verb}Many.title`)}
      explain={t(`${verb}Many.explain`)}
      count={{ key: [verb, only], ask: (signal) => counting(verb, only, signal) }}
      counted={(_, number, isMore) => t(isMore ? `${verb}Many.atLeast` : `${verb}Many.count`, { number })}
      done={(_, number) => t(`${verb}Many.done`, { number })}
      nothing={t(`${verb}Many.nothing`)}
      confirm={t(`${verb}Many.do`)}
      why={isJson ? null : t("form.notJson")}
      isDangerous={!isRun}
      needs={isRun ? "operator" : "admin"}
      recipe={doingMany(verb, wish)}
      topics={isRun ? ["instances", "jobs"] : ["jobs"]}
      fields={["rate", "payload"]}
      begin={() => doing(verb, wish)}
      onClose={onClose}
    >
      {(faults) =>
        isRun && (
          <>
            <JsonEditor
              label={t("form.payload")}
              description={t("triggerMany.payloadHint")}
              value={payload}
              error={faults["payload"]}
              onChange={(value, isValid) => {
                setPayload(value);
                setIsJson(isValid);
              }}
            />
            <RateInput value={written} onChange={write} error={faults["rate"]} hint={t("triggerMany.rateHint")} />
          </>
        )
      }
    </BulkDialog>
  );
}

const SEND = { trigger: triggerJobs, delete: deleteJobs };

async function counting(verb: OnceVerb, only: DeleteManyIn, signal: AbortSignal): Promise<{ matched: number; more: boolean }> {
  const answer = await SEND[verb]({ ...only, limit: COUNTED, dryRun: true }, { signal });
  return { matched: answer.matched, more: answer.nextCursor !== null };
}

/** Each batch has a key of its own and begins where the last one has ended: a repeat after a lost answer changes nothing again. */
export async function* doing(verb: OnceVerb, wish: TriggerManyIn): AsyncGenerator<Tally> {
  const key = freshKey();
  let [done, skipped]: [number, Skipped] = [0, {}];
  let rest: Pick<TriggerManyIn, "cursor" | "startAt"> | null = {};
  const details: string[] = [];
  for (let batch = 0; rest !== null; batch += 1) {
    const answer: JobBulkAnswer = await SEND[verb]({ ...wish, ...rest, limit: PORTION }, { headers: { "Idempotency-Key": `${key}-${batch}` } });
    done += answer.changed;
    for (const { job, reason, reasonSaid } of answer.reasons) details.push(`${job}: ${wordsOf(reason, reasonSaid)}`);
    skipped = plus(skipped, { refused: answer.skipped, held: answer.held });
    yield { done, ...skippedBy(skipped), details };
    rest = answer.nextCursor === null ? null : { cursor: answer.nextCursor, ...(wish.rate && { startAt: answer.nextStart }) };
  }
}
