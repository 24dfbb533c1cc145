import type { TenantPatch } from "@/api";
import { quoted, type Recipe, withFlags } from "@/parts/recipes";

const FLAGS = {
  weight: "--weight",
  jobs: "--jobs",
  liveInstances: "--live-instances",
  enqueuePerSecond: "--enqueue-per-second",
  payloadBytes: "--payload-bytes",
  concurrency: "--concurrency",
  callbackNetworks: "--callback-network",
  keepHistory: "--keep-history",
  keepDeadLetters: "--keep-dead-letters",
};

/** Changes the weight, the quotas and the retention of a tenant. The command line writes no limit as `none`. */
export function tenantSetting(name: string, body: TenantPatch): Recipe {
  const { quotas, ...rest } = body;
  const given = Object.fromEntries(Object.entries({ ...rest, ...quotas }).map(([field, value]) => [field, value === null ? "none" : value]));
  const cli = withFlags(`horai tenants set ${quoted(name)}`, given, FLAGS);
  return { method: "PATCH", path: `/api/v1/tenants/${encodeURIComponent(name)}`, body, ...(cli && { cli }) };
}
