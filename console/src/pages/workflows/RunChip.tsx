import type { RunOut } from "@/api";
import { StateChip } from "@/parts";

/** How a run is doing; one that has not begun looks as an instance that waits. */
export function RunChip({ state }: { state: RunOut["state"] }) {
  return <StateChip state={state === "PENDING" ? "INIT" : state} />;
}
