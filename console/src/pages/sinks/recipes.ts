import type { SinkIn } from "@/api";
import { withFlags, quoted, type Recipe } from "@/parts/recipes";

const FLAGS = { kind: "--kind", url: "--url", headers: "--header", broker: "--broker", subject: "--subject", topic: "--topic", types: "--type", batch: "--batch" };

function pathOf(name: string, verb?: string): string {
  return `/api/v1/sinks/${encodeURIComponent(name)}${verb ? `/${verb}` : ""}`;
}

/** Creates a sink, or changes it. */
export function sinkSetting(name: string, body: SinkIn): Recipe {
  const headers = Object.entries(body.headers ?? {}).map(([header, value]) => `${header}: ${value}`);
  const cli = withFlags(`horai sinks set ${quoted(name)}`, { ...body, headers }, FLAGS);
  return { method: "PUT", path: pathOf(name), body, ...(cli && { cli }) };
}

export function sinkHolding(name: string, verb: "pause" | "resume"): Recipe {
  return { method: "POST", path: pathOf(name, verb), body: {}, cli: `horai sinks ${verb} ${quoted(name)}` };
}
