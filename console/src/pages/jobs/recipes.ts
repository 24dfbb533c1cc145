import type { BackfillIn, JobIn, JobOut, JobPatch } from "@/api";
import { quoted, type Recipe } from "@/parts/recipes";
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
