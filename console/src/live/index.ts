export { useLiveData } from "./events";
export { DELAY_LIMIT_MS, type HealthReading, READ_ONLY_AFTER, useHealth, useReadOnly, waitAfter } from "./health";
export { announceSwitch, isSignedOut, type Needs, seesPlatform, SESSION, useMay, useObstacle, useSession, useSwitches } from "./session";
export { useOutdatedBy } from "./outdated";
export { useAskedEvery } from "./every";
