import { useRef, useState } from "react";
import { createJob, type JobIn, ProblemError, Unreachable } from "@/api";

export type Phase = "idle" | "loading" | "done" | "error";

interface Attempt {
  body: string;
  phase: Phase;
  error: unknown;
  jobId: string | null;
}

const NONE: Attempt = { body: "", phase: "idle", error: null, jobId: null };

/** Creates a job from a draft. One key names the draft until its outcome is known, so a repeated click creates nothing twice. */
export function useCreateJob(draft: JobIn, onCreated?: (jobId: string) => void) {
  const body = JSON.stringify(draft);
  const [attempt, setAttempt] = useState(NONE);
  const named = useRef<{ body: string; key: string } | null>(null);
  const isOfThisDraft = attempt.body === body;

  async function create(): Promise<void> {
    if (named.current?.body !== body) {
      named.current = { body, key: freshKey() };
    }
    setAttempt({ ...NONE, body, phase: "loading" });
    try {
      const jobId = await createOnce(draft, named.current.key);
      named.current = null;
      setAttempt({ ...NONE, body, phase: "done", jobId });
      onCreated?.(jobId);
    } catch (error) {
      if (isOutcome(error)) {
        named.current = null;
      }
      setAttempt({ ...NONE, body, phase: "error", error });
    }
  }

  return {
    phase: isOfThisDraft ? attempt.phase : ("idle" as const),
    error: isOfThisDraft ? attempt.error : null,
    jobId: isOfThisDraft ? attempt.jobId : null,
    isBusy: attempt.phase === "loading",
    create,
  };
}

/** The id of the job that this key has made, now or by an earlier request whose answer was lost. */
async function createOnce(draft: JobIn, key: string): Promise<string> {
  try {
    return (await createJob(draft, { headers: { "Idempotency-Key": key } })).id;
  } catch (error) {
    if (error instanceof ProblemError && error.problem.idempotencyKey === key && error.problem.jobId) {
      return error.problem.jobId;
    }
    throw error;
  }
}

/** Whether the server has decided. After a lost answer or a failure of its own it may have created the job. */
function isOutcome(error: unknown): boolean {
  return error instanceof ProblemError ? error.problem.status < 500 : !(error instanceof Unreachable);
}

/** `crypto.randomUUID` is missing where the console is served over plain HTTP by another name than loopback. */
function freshKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `create-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
