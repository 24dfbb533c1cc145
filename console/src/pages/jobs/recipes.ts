import type { JobOut } from "@/api";
import { quoted } from "@/parts/recipes";

/** `/api/v1/jobs/coupon_job/pause` */
export function pathOf(job: Pick<JobOut, "name">, verb?: string): string {
  return `/api/v1/jobs/${encodeURIComponent(job.name)}${verb ? `/${verb}` : ""}`;
}

/** `horai jobs pause coupon_job` */
export function commandOf(job: Pick<JobOut, "name">, verb: string): string {
  return `horai jobs ${verb} ${quoted(job.name)}`;
}
