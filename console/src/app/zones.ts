import { useLocalStorage } from "@mantine/hooks";

/** `local` is the browser's, `job` the job's own where there is one; anything else is the name of a zone. */
export type ZoneChoice = "local" | "UTC" | "job" | (string & {});

export const LOCAL_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The zone in which all times are shown, and how to change it. */
export function useZoneChoice(): [ZoneChoice, (choice: ZoneChoice) => void] {
  const [choice, choose] = useLocalStorage<ZoneChoice>({
    key: "horai-zone",
    defaultValue: "local",
    getInitialValueInEffect: false,
    serialize: (value) => value,
    deserialize: (value) => value ?? "local",
  });
  return [choice, choose];
}

/** The name of the zone to show a time in; `own` is the zone of the job it belongs to. */
export function useZone(own?: string | null): string {
  const [choice] = useZoneChoice();
  if (choice === "job") {
    return own ?? LOCAL_ZONE;
  }
  return choice === "local" ? LOCAL_ZONE : choice;
}
