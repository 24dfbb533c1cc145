import { QueryCache, QueryClient } from "@tanstack/react-query";
import { ProblemError } from "./request";

/** A refusal stays a refusal; an outage is tried again, and the live data asks again anyway. */
function mayTryAgain(failures: number, error: Error): boolean {
  return failures < 2 && (!(error instanceof ProblemError) || error.problem.status >= 500);
}

/** Keys begin with the topic of the event stream that outdates them: `["jobs", …]`, `["instances", …]`. */
export function createQueries(): QueryClient {
  const queries: QueryClient = new QueryClient({
    queryCache: new QueryCache({
      onError: (error, query) => {
        if (error instanceof ProblemError && error.problem.status === 401 && query.queryKey[0] !== "session") {
          void queries.invalidateQueries({ queryKey: ["session"] });
        }
      },
    }),
    defaultOptions: {
      queries: { staleTime: 1_000, retry: mayTryAgain, networkMode: "always" },
      mutations: { retry: false, networkMode: "always" },
    },
  });
  return queries;
}
