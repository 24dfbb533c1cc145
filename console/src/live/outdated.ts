import { useThrottledValue } from "@mantine/hooks";
import { type QueryKey, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

const PAUSE_MS = 3_000;

/** Has queries asked again by news of another topic than their own, too; a list of many pages not at every beat. */
export function useOutdatedBy(topic: string, queryKey: QueryKey): void {
  const queries = useQueryClient();
  const beat = useQuery({ queryKey: [topic, "beat"], queryFn: () => Date.now() });
  const heard = useThrottledValue(beat.dataUpdatedAt, PAUSE_MS);
  const key = JSON.stringify(queryKey);
  useEffect(() => {
    if (heard > 0) void queries.invalidateQueries({ queryKey: JSON.parse(key) as QueryKey });
  }, [queries, heard, key]);
}
