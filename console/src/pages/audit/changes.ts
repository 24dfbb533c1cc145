import type { AuditOut } from "@/api";

type Fields = Record<string, unknown> | null | undefined;

function shown(value: unknown, none: string): string {
  if (value === null || value === undefined) return none;
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The fields that a change has touched, each with its value before and after; the counts of a batch. */
export function changesOf(row: Pick<AuditOut, "before" | "after" | "counts">, none: string): string {
  const before = row.before as Fields;
  const after = row.after as Fields;
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  const changes = names.map((name) =>
    before ? `${name}: ${shown(before[name], none)} → ${shown(after?.[name], none)}` : `${name}: ${shown(after?.[name], none)}`,
  );
  const counts = Object.entries((row.counts as Fields) ?? {}).map(([name, count]) => `${name}: ${String(count)}`);
  return [...changes, ...counts].join(", ");
}
