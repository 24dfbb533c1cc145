import type { EntityItem, EntityRemovalIn, JobOut } from "@/api";
import { forEach, quoted, type Recipe, withFlags } from "@/parts/recipes";

const FLAGS = { prefix: "--prefix", status: "--status", olderThan: "--older-than", batch: "--batch" };

function pathOf(job: Pick<JobOut, "name">, verb: string): string {
  return `/api/v1/jobs/${encodeURIComponent(job.name)}/entities/${verb}`;
}

/** Removes the entities by key, or all that match. */
export function removal(job: Pick<JobOut, "name">, wish: EntityRemovalIn): Recipe {
  const { keys, ...only } = wish;
  const command = `horai entities remove ${quoted(job.name)}`;
  const cli = keys ? forEach(command, keys) : withFlags(command, only, FLAGS);
  return { method: "POST", path: pathOf(job, "remove"), body: { ...wish }, ...(cli && { cli }) };
}

/** Adds entities. The command line reads them from a file of lines, which the shell makes. */
export function addition(job: Pick<JobOut, "name">, items: EntityItem[]): Recipe {
  const lines = items.map((item) => JSON.stringify(item)).join("\n");
  const cli = `cat > entities.jsonl <<'END_OF_ENTITIES'\n${lines}\nEND_OF_ENTITIES\nhorai entities import ${quoted(job.name)} entities.jsonl`;
  return { method: "POST", path: pathOf(job, "batch"), body: { items }, cli };
}
