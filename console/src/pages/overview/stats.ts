import { useQuery } from "@tanstack/react-query";
import { getAttention, getStats } from "@/api";

/** The server keeps its answer for five seconds, so the news that made us ask may not be in it: look once more later. */
const LATER_MS = 10_000;

/** The last hour by minutes, and what is live now. */
export function useStats() {
  return useQuery({
    queryKey: ["instances", "stats"],
    queryFn: ({ signal }) => getStats({ minutes: 60 }, { signal }),
    refetchInterval: LATER_MS,
  });
}

/** What needs somebody. */
export function useAttention() {
  return useQuery({
    queryKey: ["instances", "attention"],
    queryFn: ({ signal }) => getAttention({ signal }),
    refetchInterval: LATER_MS,
  });
}
