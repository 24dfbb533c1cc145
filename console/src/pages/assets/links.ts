import type { AssetLink } from "@/api";
import type { GraphNode } from "@/pages/workflows/graph";

export type Kind = "asset" | "workflow" | "job";

/** The names that run jobs: they are workflows. The others of the graph are jobs, or assets with a colon in front. */
export function workflowsIn(links: readonly AssetLink[]): ReadonlySet<string> {
  return new Set(links.filter(({ source, target }) => !isAsset(source) && !isAsset(target)).map(({ source }) => source));
}

function isAsset(name: string): boolean {
  return name.startsWith(":");
}

/** The kind of a node of the graph, and its own name. */
export function meaningOf(node: string, workflows: ReadonlySet<string>): { kind: Kind; name: string } {
  if (isAsset(node)) return { kind: "asset", name: node.slice(1) };
  return { kind: workflows.has(node) ? "workflow" : "job", name: node };
}

/** The nodes to draw: assets, what updates them and what they start. Of the jobs of a workflow, only those that use assets. */
export function nodesOf(links: readonly AssetLink[], words: Readonly<Record<Kind, string>>): GraphNode[] {
  const workflows = workflowsIn(links);
  const ofAssets = links.filter(({ source, target }) => isAsset(source) || isAsset(target));
  const users = new Set(ofAssets.flatMap(({ source, target }) => [source, target]));
  const parents = new Map<string, Set<string>>([...users].map((name) => [name, new Set()]));
  for (const { source, target } of links) {
    if (!users.has(target)) continue;
    if (!parents.has(source)) parents.set(source, new Set());
    parents.get(target)?.add(source);
  }
  return [...parents].map(([node, after]) => {
    const { kind, name } = meaningOf(node, workflows);
    return { name: node, label: name, job: words[kind], after: [...after], ...(kind !== "job" && { kind }) };
  });
}
