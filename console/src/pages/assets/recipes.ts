import type { AssetUpdateIn } from "@/api";
import { quoted, type Recipe } from "@/parts/recipes";

/** An update with what was given of metadata and data interval. An interval without one of its ends is left out. */
export function bodyOf(metadata: unknown, interval: { start: string; end: string }): AssetUpdateIn {
  return { ...(metadata !== undefined && { metadata }), ...(interval.start && interval.end && { interval }) };
}

/** An update of an asset from outside. */
export function updating(name: string, body: AssetUpdateIn): Recipe {
  const metadata = body.metadata === undefined ? "" : ` --metadata ${quoted(JSON.stringify(body.metadata))}`;
  const interval = body.interval ? ` --interval ${body.interval.start}/${body.interval.end}` : "";
  const path = `/api/v1/assets/${encodeURIComponent(name)}/updates`;
  return { method: "POST", path, body, isOnce: true, cli: `horai assets update ${quoted(name)}${metadata}${interval}` };
}
