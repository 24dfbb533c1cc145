import type { BackfillIn, DeleteManyIn, JobIn, JobOut, JobPatch, JobSweepIn, TriggerManyIn } from "@/api";
import { forEach, quoted, type Recipe, withFlags } from "@/parts/recipes";
import { flagsOf } from "./backfill/wish";

type Named = Pick<JobOut, "name">;

/** `/api/v1/jobs/coupon_job/pause` */
function pathOf(job: Named, verb?: string): string {
  return `/api/v1/jobs/${encodeURIComponent(job.name)}${verb ? `/${verb}` : ""}`;
}

/** `horai jobs pause coupon_job` */
export function commandOf(job: Named, verb: string): string {
  return `horai jobs ${verb} ${quoted(job.name)}`;
}

export function creation(body: JobIn): Recipe {
  const cli = `echo ${quoted(JSON.stringify(body))} | horai jobs create --file -`;
  return { method: "POST", path: "/api/v1/jobs", body, isOnce: true, cli };
}

export function amendment(job: Named, body: JobPatch): Recipe {
  return { method: "PATCH", path: pathOf(job), body };
}

export function deletion(job: Named): Recipe {
  return { method: "DELETE", path: pathOf(job), cli: `${commandOf(job, "delete")} --yes` };
}

export function hold(job: Named, act: "pause" | "resume"): Recipe {
  return { method: "POST", path: pathOf(job, act), cli: commandOf(job, act) };
}

export function triggering(job: Named, payload: unknown): Recipe {
  const body = payload === undefined ? {} : { payload };
  const flags = payload === undefined ? "" : ` --payload ${quoted(JSON.stringify(payload))}`;
  return { method: "POST", path: pathOf(job, "trigger"), body, isOnce: true, cli: commandOf(job, "trigger") + flags };
}

export function backfilling(job: Named, body: BackfillIn): Recipe {
  return { method: "POST", path: pathOf(job, "backfill"), body, isOnce: true, cli: `${commandOf(job, "backfill")} ${flagsOf(body)}` };
}

export function cancellation(backfill: string): Recipe {
  return { method: "POST", path: `/api/v1/backfills/${backfill}/cancel`, cli: `horai backfills cancel ${backfill}` };
}

const SELECTS = { tag: "--tag", queue: "--queue", owner: "--owner" };

/** Pauses or resumes the jobs by name, or all that match. */
export function holdingMany(verb: "pause" | "resume", wish: JobSweepIn): Recipe {
  const { names, note, ...only } = wish;
  const cli = names
    ? forEach(`horai jobs ${verb}`, names, withFlags("", { note }, { note: "--note" }))
    : withFlags(`horai jobs ${verb}`, { ...only, note }, { ...SELECTS, note: "--note" });
  return { method: "POST", path: `/api/v1/jobs/${verb}`, body: wish, ...(cli && { cli }) };
}

/** Runs or deletes the jobs by name, or all that match. */
export function doingMany(verb: "trigger" | "delete", wish: TriggerManyIn | DeleteManyIn): Recipe {
  const { names, payload, rate, ...only }: TriggerManyIn = wish;
  const written = { payload: payload === undefined ? undefined : JSON.stringify(payload) };
  const flags = { ...SELECTS, payload: "--payload", rate: "--rate" };
  // A rate spreads the starts of one request: a loop has none.
  const loop = rate ? undefined : forEach(`horai jobs ${verb}`, names ?? [], `${withFlags("", written, flags)}${verb === "delete" ? " --yes" : ""}`);
  const all = withFlags(`horai jobs ${verb}`, { ...only, ...written, rate }, flags);
  const cli = names ? loop : all && `${all} --yes`;
  return { method: "POST", path: `/api/v1/jobs/${verb}`, body: wish, isOnce: true, ...(cli && { cli }) };
}
