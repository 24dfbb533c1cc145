import type { ReplaySweepIn, SweepIn } from "@/api";
import { forEach, type Recipe } from "@/parts/recipes";

/** Cancels or replays instances. The command line cancels them by id, and replays dead letters. */
export function changingMany(verb: "cancel" | "replay", wish: SweepIn | ReplaySweepIn): Recipe {
  const cli = verb === "cancel" && wish.ids ? forEach("horai instances cancel", wish.ids) : undefined;
  return { method: "POST", path: `/api/v1/instances/${verb}`, body: wish, ...(cli && { cli }) };
}
