import { useState } from "react";
import { useTranslation } from "react-i18next";
import { cancelRuns, type RerunManyIn, rerunRuns, type RunsAnswer, type RunsIn, type WorkflowOut } from "@/api";
import { wordsOf } from "@/i18n";
import { BulkDialog } from "@/parts/BulkDialog";
import { RateInput } from "@/parts/RateInput";
import { type Skipped, skippedBy, type Tally } from "@/parts/useWork";
import { changingRuns } from "./recipes";

export type RunVerb = "cancel" | "rerun";

/** The runs by id, or all that match a filter. */
export interface ManyRuns {
  verb: RunVerb;
  only: RunsIn;
}

/** So many at a time: often enough to be seen, and to be stopped. */
const PORTION = 25;
/** The most runs that one request counts or changes. */
const COUNTED = 10_000;

/** Cancels or reruns the runs that were selected, or all that match. */
export function ManyRunsDialog({ workflow, verb, only, onClose }: ManyRuns & { workflow: WorkflowOut; onClose: () => void }) {
  const { t } = useTranslation(["workflows", "common"]);
  const [written, write] = useState("");
  const rate = written.trim();
  return (
    <BulkDialog
      title={t(`${verb}Many.title`)}
      explain={t(`${verb}Many.explain`)}
      count={{ key: [workflow.id, verb, only], ask: (signal) => SEND[verb](workflow.id, { ...only, limit: COUNTED, dryRun: true }, { signal }) }}
      counted={(_, number, isMore) => t(isMore ? `${verb}Many.atLeast` : `${verb}Many.count`, { number })}
      done={(_, number) => t(`${verb}Many.done`, { number })}
      nothing={t(`${verb}Many.nothing`)}
      confirm={t(`${verb}Many.do`)}
      isDangerous={verb === "cancel"}
      recipe={changingRuns(workflow.name, verb, { ...only, ...(rate && { rate }) })}
      topics={["workflows", "instances", "dead-letters"]}
      fields={["rate"]}
      begin={() => changing(workflow.id, verb, only, rate)}
      onClose={onClose}
    >
      {(faults) => verb === "rerun" && <RateInput value={written} onChange={write} error={faults["rate"]} hint={t("rerunMany.rateHint")} />}
    </BulkDialog>
  );
}

const SEND = { cancel: cancelRuns, rerun: rerunRuns };

/**
 * Changed runs no longer match and skipped ones still do: the work ends with a batch that changes nothing. At a rate, each batch starts where the
 * last one has ended.
 */
export async function* changing(workflow: string, verb: RunVerb, only: RunsIn, rate = ""): AsyncGenerator<Tally> {
  let startAt: string | null = null;
  let [done, skipped]: [number, Skipped] = [0, {}];
  const details = new Map<string, string>();
  for (;;) {
    const spread: RerunManyIn = rate ? { rate, ...(startAt && { startAt }) } : {};
    const answer: RunsAnswer = await SEND[verb](workflow, { ...only, ...spread, limit: Math.min(PORTION + skippedBy(skipped).left, COUNTED) });
    startAt = answer.nextStart;
    done += answer.changed;
    for (const { run, reason, reasonSaid } of answer.reasons) details.set(run, `${run}: ${wordsOf(reason, reasonSaid)}`);
    skipped = { refused: Math.max(answer.skipped, skipped.refused ?? 0), held: answer.held };
    yield { done, ...skippedBy(skipped), details: [...details.values()] };
    if (!answer.more || answer.changed === 0) return;
  }
}
