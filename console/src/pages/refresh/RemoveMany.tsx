import { useTranslation } from "react-i18next";
import { type EntityRemovalIn, type JobOut, removeEntities } from "@/api";
import { BulkDialog } from "@/parts/BulkDialog";
import { plus, type Skipped, skippedBy, type Tally } from "@/parts/useWork";
import { removal } from "./recipes";

/** So many at a time: often enough to be seen, and to be stopped. */
const PORTION = 1_000;
const NAMED = 500;

/** The entities by key, or all that match a filter. */
export type ManyEntities = { keys: readonly string[] } | { filters: EntityRemovalIn };

/** Removes the entities that were selected, or all that match. */
export function RemoveMany({ job, many, onClose }: { job: JobOut; many: ManyEntities; onClose: () => void }) {
  const { t } = useTranslation(["refresh", "common"]);
  const wishes = wishesOf(many);
  return (
    <BulkDialog
      title={t("removeMany.title")}
      explain={t("removeMany.explain")}
      count={{ key: [job.id, "remove", many], ask: (signal) => countOf(job.id, wishes, signal) }}
      counted={(_, number, isMore) => t(isMore ? "removeMany.atLeast" : "removeMany.count", { number })}
      done={(_, number) => t("removeMany.done", { number })}
      nothing={t("removeMany.nothing")}
      confirm={t("removeMany.do")}
      isDangerous
      recipe={wishes[0] ? removal(job, wishes[0]) : null}
      topics={["refresh"]}
      begin={() => removing(job.id, wishes)}
      onClose={onClose}
    />
  );
}

/** The requests that a wish comes to: one for a filter, several for many keys. */
export function wishesOf(many: ManyEntities): EntityRemovalIn[] {
  if ("filters" in many) return [many.filters];
  const wishes: EntityRemovalIn[] = [];
  for (let at = 0; at < many.keys.length; at += NAMED) wishes.push({ keys: many.keys.slice(at, at + NAMED) });
  return wishes;
}

async function countOf(job: string, wishes: readonly EntityRemovalIn[], signal: AbortSignal): Promise<{ matched: number; more: boolean }> {
  let [matched, more] = [0, false];
  for (const wish of wishes) {
    const answer = await removeEntities(job, { ...wish, dryRun: true }, { signal });
    matched += answer.matched;
    more ||= answer.more;
  }
  return { matched, more };
}

/** Those that are held match again: it ends where a portion removes nothing. */
export async function* removing(job: string, wishes: readonly EntityRemovalIn[]): AsyncGenerator<Tally> {
  let [done, skipped]: [number, Skipped] = [0, {}];
  for (const wish of wishes) {
    for (;;) {
      const answer = await removeEntities(job, { ...wish, limit: PORTION });
      done += answer.removed;
      const isLast = !answer.more || answer.removed === 0;
      yield { done, ...skippedBy(plus(skipped, { held: answer.held })) };
      if (!isLast) continue;
      skipped = plus(skipped, { held: answer.held });
      break;
    }
  }
}
