import type { ReplaySweepIn, SweepIn } from "@/api";
import { forEach, quoted, type Recipe } from "@/parts/recipes";

/** Cancels or replays instances. The command line cancels them by id, and replays dead letters. */
export function changingMany(verb: "cancel" | "replay", wish: SweepIn | ReplaySweepIn): Recipe {
  const cli = verb === "cancel" && wish.ids ? forEach("horai instances cancel", wish.ids) : undefined;
  return { method: "POST", path: `/api/v1/instances/${verb}`, body: wish, ...(cli && { cli }) };
}

/** A signal to an instance, with a payload or without one. */
export function signalling(id: string, name: string, payload: unknown): Recipe {
  const flags = payload === undefined ? "" : ` --payload ${quoted(JSON.stringify(payload))}`;
  return {
    method: "POST",
    path: `/api/v1/instances/${id}/signals/${encodeURIComponent(name)}`,
    body: payload === undefined ? {} : { payload },
    isOnce: true,
    cli: `horai instances signal ${quoted(name)} ${id}${flags}`,
  };
}

/** The cancel of an instance; with `compensate`, its finished steps are undone first. */
export function cancelling(id: string, compensate: boolean): Recipe {
  return {
    method: "POST",
    path: `/api/v1/instances/${id}/cancel${compensate ? "?compensate=true" : ""}`,
    cli: `horai instances cancel ${id}${compensate ? " --compensate" : ""}`,
  };
}
