import type { DiscardManyIn, ReplayIn } from "@/api";
import { forEach, type Recipe, withFlags } from "@/parts/recipes";

const FLAGS = { job: "--job", tag: "--tag", errorCode: "--error-code", fingerprint: "--fingerprint", from: "--from", to: "--to", limit: "--limit", rate: "--rate" };

/** Replays the letters by id, or all that match. A rate spreads the starts of one request: a loop has none. */
export function replayingMany(wish: ReplayIn): Recipe {
  const { ids, ...only } = wish;
  const all = withFlags("horai dlq replay", only, FLAGS);
  const cli = ids ? (only.rate ? undefined : forEach("horai dlq replay", ids)) : all && `${all} --yes`;
  return { method: "POST", path: "/api/v1/dlq/replay", body: wish, ...(cli && { cli }) };
}

/** Discards the letters by id, or all that match. The command line discards one letter at a time. */
export function discardingMany(wish: DiscardManyIn): Recipe {
  const { ids, reason } = wish;
  const cli = ids && forEach("horai dlq discard", ids, withFlags("", { reason }, { reason: "--reason" }));
  return { method: "POST", path: "/api/v1/dlq/discard", body: wish, ...(cli && { cli }) };
}
