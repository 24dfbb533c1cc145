import { createJob, type JobIn, ProblemError } from "@/api";
import { type OnceHeaders, useOnce } from "@/parts/once";

export type Phase = "idle" | "loading" | "done" | "error";

const PHASES = { idle: "idle", pending: "loading", success: "done", error: "error" } as const satisfies Record<string, Phase>;

/** Creates a job from a draft. One key names the draft until its outcome is known, so a repeated click creates nothing twice. */
export function useCreateJob(draft: JobIn, onCreated?: (jobId: string) => void) {
  const once = useOnce(createOnce);
  const isOfThisDraft = JSON.stringify(once.variables) === JSON.stringify(draft);
  return {
    phase: isOfThisDraft ? PHASES[once.status] : ("idle" as const),
    error: isOfThisDraft ? once.error : null,
    isBusy: once.isPending,
    create: () => once.mutate(draft, { onSuccess: (jobId) => onCreated?.(jobId) }),
  };
}

/** The id of the job that this key has made, now or by an earlier request whose answer was lost. */
async function createOnce(draft: JobIn, headers: OnceHeaders): Promise<string> {
  try {
    return (await createJob(draft, { headers })).id;
  } catch (error) {
    const problem = error instanceof ProblemError ? error.problem : null;
    if (problem?.jobId && problem.idempotencyKey === headers["Idempotency-Key"]) {
      return problem.jobId;
    }
    throw error;
  }
}
