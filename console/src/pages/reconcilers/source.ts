import type { ReconcilerOut } from "@/api";

/** Where a reconciler reads, in a line: an address, or the first line of a query. */
export function sourceLine(reconciler: ReconcilerOut): string {
  const { type, url, query } = reconciler.source;
  return type === "http" ? String(url ?? "") : String(query ?? "").replaceAll(/\s+/g, " ");
}
