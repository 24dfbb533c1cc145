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

/** Red where something is overdue; that all is fresh is green, and on the way there it is only a share. */
export function colourOf(found: Pick<RefreshOut, "overdue" | "coverage">): string {
  if (found.overdue > 0) return "var(--state-DEAD-solid)";
  return found.coverage === 1 ? "var(--state-SUCCESS-solid)" : "var(--mantine-primary-color-filled)";
}
