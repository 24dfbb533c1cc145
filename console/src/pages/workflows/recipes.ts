import type { RerunManyIn, RunsIn, WorkflowIn } from "@/api";
import { forEach, piped, quoted, type Recipe, withFlags } from "@/parts/recipes";

const FLAGS = { state: "--state", from: "--from", to: "--to" };

export function workflowCreation(body: WorkflowIn): Recipe {
  return { method: "POST", path: "/api/v1/workflows", body, isOnce: true, cli: piped(body, "horai workflows create --file -") };
}

/** Cancels or reruns the runs by id, or all that match. The command line reruns blocked runs. */
export function changingRuns(workflow: string, verb: "cancel" | "rerun", wish: RunsIn | RerunManyIn): Recipe {
  const { ids, state, rate, ...rest }: RerunManyIn = wish;
  const name = quoted(workflow);
  const cancel = ids ? forEach(`horai workflows cancel ${name}`, ids) : withFlags(`horai workflows cancel ${name}`, { state, ...rest }, FLAGS);
  const rerun = !ids && state === "BLOCKED" ? withFlags(`horai workflows rerun-blocked ${name}`, { ...rest, rate }, { ...FLAGS, rate: "--rate" }) : undefined;
  const cli = verb === "cancel" ? cancel : rerun;
  return { method: "POST", path: `/api/v1/workflows/${encodeURIComponent(workflow)}/runs/${verb}`, body: wish, ...(cli && { cli }) };
}
