import { TextInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type JobSweepIn, pauseJobs, resumeJobs } from "@/api";
import { BulkDialog } from "@/parts/BulkDialog";
import { skippedBy, type Tally } from "@/parts/useWork";
import { holdingMany } from "./recipes";

export type HoldVerb = "pause" | "resume";

/** The jobs by name, or all that match a filter. */
export interface ManyJobs {
  verb: HoldVerb;
  only: JobSweepIn;
}

/** So many at a time: often enough to be seen, and to be stopped. */
const PORTION = 200;

/** Pauses or resumes the jobs that were selected, or all that match. */
export function ManyJobsDialog({ verb, only, onClose }: ManyJobs & { onClose: () => void }) {
  const { t } = useTranslation(["jobs", "common"]);
  const [written, write] = useState("");
  const wish = { ...only, ...(written.trim() && { note: written.trim() }) };
  return (
    <BulkDialog
      title={t(`${verb}Many.title`)}
      explain={t(`${verb}Many.explain`)}
      count={{ key: [verb, only], ask: (signal) => SEND[verb]({ ...only, dryRun: true }, { signal }) }}
      counted={(_, number, isMore) => t(isMore ? `${verb}Many.atLeast` : `${verb}Many.count`, { number })}
      done={(_, number) => t(`${verb}Many.done`, { number })}
      nothing={t(`${verb}Many.nothing`)}
      confirm={t(`${verb}Many.do`)}
      recipe={holdingMany(verb, wish)}
      topics={["jobs"]}
      begin={() => holding(verb, wish)}
      onClose={onClose}
    >
      {() => <TextInput label={t("holdNote")} value={written} onChange={(event) => write(event.currentTarget.value)} maxLength={2_000} />}
    </BulkDialog>
  );
}

const SEND = { pause: pauseJobs, resume: resumeJobs };

/** Those that are held match again: it ends where a portion changes nothing. */
export async function* holding(verb: HoldVerb, wish: JobSweepIn): AsyncGenerator<Tally> {
  let done = 0;
  for (;;) {
    const answer = await SEND[verb]({ ...wish, limit: PORTION });
    done += answer.changed;
    yield { done, ...skippedBy({ held: answer.held }) };
    if (!answer.more || answer.changed === 0) return;
  }
}
