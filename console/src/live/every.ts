import { type QueryKey, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

/** Has lists asked again at an interval, while the tab is seen: the event stream has no topic for them. */
export function useAskedEvery(ms: number, queryKey: QueryKey): void {
  const queries = useQueryClient();
  const key = JSON.stringify(queryKey);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) void queries.invalidateQueries({ queryKey: JSON.parse(key) as QueryKey });
    }, ms);
    return () => clearInterval(timer);
  }, [queries, ms, key]);
}
