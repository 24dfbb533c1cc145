import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { getForecastWhatIf } from "@/api";
import type { Trial } from "./trial";

/** The forecast with hypothetical jobs, once it is asked for; a refusal leaves the forecast without them. */
export function useWhatIf(hours: string) {
  const [trial, ask] = useState<Trial | null>(null);
  const found = useQuery({
    queryKey: ["forecast", "what-if", hours, trial],
    queryFn: ({ signal }) => getForecastWhatIf({ ...trial, hours: Number(hours) }, { signal }),
    enabled: trial !== null,
    placeholderData: keepPreviousData,
    retry: false,
  });
  const isShown = trial !== null && !found.error;
  return { ask, isLoading: found.isFetching, error: trial && found.error, answer: isShown ? found.data : undefined };
}
