import { useQuery } from "@tanstack/react-query";
import { getRefresh, type RefreshOut } from "@/api";

/** How fresh the entities of a job are. */
export function useFreshness(job: string) {
  return useQuery({ queryKey: ["refresh", job, "freshness"], queryFn: ({ signal }) => getRefresh(job, { signal }) });
}

/** `12.3 %`; what is not quite everything never reads as everything. */
export function percentOf(coverage: number): string {
  return `${(Math.floor(coverage * 1_000) / 10).toFixed(coverage === 1 || coverage === 0 ? 0 : 1)} %`;
}

/** The share that is fresh because its last run succeeded, and the share whose last run failed; both of the window. */
export function sharesOf({ coverage, failed, entities }: Pick<RefreshOut, "coverage" | "failed" | "entities">): { good: number; bad: number } {
  const bad = entities > 0 ? failed / entities : 0;
  return { good: Math.max(0, (coverage ?? 0) - bad), bad };
}

/** Amber where something is overdue, red is what failed; that all is fresh is green, and on the way there it is only a share. */
export function colourOf(found: Pick<RefreshOut, "overdue" | "coverage">): string {
  if (found.overdue > 0) return "var(--horai-warn)";
  return found.coverage === 1 ? "var(--state-SUCCESS-solid)" : "var(--mantine-primary-color-filled)";
}
