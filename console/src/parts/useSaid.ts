import { useCallback } from "react";
import type { Sentence } from "@/api";
import { useZone } from "@/app/zones";
import { inWords } from "@/i18n";
import { withLocalTimes } from "./time";

/** What the server says, in the language and with the clocks of the page; `own` is the zone of the job that it is about. */
export function useSaid(own?: string | null): (said: Sentence) => string {
  const zone = useZone(own);
  return useCallback((said) => withLocalTimes(inWords(said), zone), [zone]);
}
