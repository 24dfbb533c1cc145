import { createContext, useContext, useSyncExternalStore } from "react";
import { keepText, keptText } from "@/parts/storage";

/** `local` is the browser's, `job` the job's own where there is one; anything else is the name of a zone. */
export type ZoneChoice = "local" | "UTC" | "job" | (string & {});

export const LOCAL_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

const KEY = "zone";
const listeners = new Set<() => void>();
/** Read once: a browser that keeps nothing has the choice for as long as the page. */
let current: ZoneChoice | null = null;

function subscribe(listener: () => void): () => void {
  const hear = (): void => {
    current = null;
    listener();
  };
  listeners.add(listener);
  addEventListener("storage", hear); // of another tab
  return () => {
    listeners.delete(listener);
    removeEventListener("storage", hear);
  };
}

function read(): ZoneChoice {
  current ??= keptText(KEY) ?? "local";
  return current;
}

function choose(choice: ZoneChoice): void {
  current = choice;
  keepText(KEY, choice);
  for (const listener of listeners) listener();
}

/** The zone in which all times are shown, and how to change it. Every time of a list reads it: that writes nothing and tells no other. */
export function useZoneChoice(): [ZoneChoice, (choice: ZoneChoice) => void] {
  return [useSyncExternalStore(subscribe, read), choose];
}

/** The zone of the job that a part of the page is about. */
export const JobZone = createContext<string | null | undefined>(null);

/** The name of the zone to show a time in; `own` is the zone of the job it belongs to, by default that of the part of the page. */
export function useZone(own?: string | null): string {
  const [choice] = useZoneChoice();
  const around = useContext(JobZone);
  if (choice === "job") {
    return own ?? around ?? LOCAL_ZONE;
  }
  return choice === "local" ? LOCAL_ZONE : choice;
}
