import type { MapIn, MapOut, NodeIn, SensorIn, SensorOut } from "@/api";
import type { NodeState } from "@/parts";

type TriggerRule = NonNullable<NodeIn["triggerRule"]>;

/** A node as it is drawn: of a definition without a state, of a run with one. */
export interface GraphNode {
  name: string;
  /** Shown in place of the name, where names must be unique among objects of several kinds. */
  label?: string;
  /** What it is, unless a job: drawn in another shape. */
  kind?: "asset" | "workflow";
  job: string;
  after: readonly string[];
  triggerRule?: TriggerRule;
  state?: NodeState;
  durationMs?: number | null;
  startedAt?: string | null;
  /** The settings of a map, in a run with its progress; null or undefined: an ordinary node. */
  map?: MapIn | MapOut | null;
  /** The workflow that it starts a run of; null or undefined: an ordinary node. */
  workflow?: string | null;
  /** How it asks for a condition, in a run with the number of polls; null or undefined: an ordinary node. */
  sensor?: SensorIn | SensorOut | null;
  /** In a run, the nodes directly after it that it chose; null if it did not choose. */
  chosen?: readonly string[] | null;
}

type Links = Pick<GraphNode, "name" | "after">;

/** The nodes behind a node, near and far. */
export function descendantsOf(nodes: readonly Links[], name: string): Set<string> {
  const children = new Map<string, string[]>();
  for (const node of nodes) {
    for (const parent of node.after) {
      const known = children.get(parent);
      if (known) known.push(node.name);
      else children.set(parent, [node.name]);
    }
  }
  const found = new Set<string>();
  const waiting = [name];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const child of children.get(next) ?? []) {
      if (found.has(child)) continue;
      found.add(child);
      waiting.push(child);
    }
  }
  return found;
}

/** For each node that is blocked: the dead ones before it that keep it so. */
export function heldBy(nodes: readonly GraphNode[]): Map<string, string[]> {
  const held = new Map<string, string[]>();
  // A dead node does not hold up what runs in any case, or because of it.
  const strict = nodes.map((node) => (node.triggerRule === "allDone" || node.triggerRule === "oneFailed" ? { ...node, after: [] } : node));
  for (const dead of nodes.filter((node) => node.state === "DEAD")) {
    const behind = descendantsOf(strict, dead.name);
    for (const node of nodes) {
      if (node.state === "BLOCKED" && behind.has(node.name)) {
        held.set(node.name, [...(held.get(node.name) ?? []), dead.name]);
      }
    }
  }
  return held;
}

/** The names of a circle, the first again at its end; null where there is none. */
export function circleIn(nodes: readonly Links[]): string[] | null {
  const parents = new Map(nodes.map((node) => [node.name, node.after]));
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (name: string): string[] | null => {
    const at = path.indexOf(name);
    if (at >= 0) return [...path.slice(at), name].toReversed();
    if (done.has(name)) return null;
    path.push(name);
    for (const parent of parents.get(name) ?? []) {
      const circle = parents.has(parent) ? visit(parent) : null;
      if (circle) return circle;
    }
    path.pop();
    done.add(name);
    return null;
  };
  for (const node of nodes) {
    const circle = visit(node.name);
    if (circle) return circle;
  }
  return null;
}

/** How deep a node stands: behind the longest way that leads to it. Within a circle there is no such number, so it stops. */
export function depthsOf(nodes: readonly Links[]): Map<string, number> {
  const depths = new Map(nodes.map((node) => [node.name, 0]));
  for (let round = 0; round < nodes.length; round += 1) {
    let isChanged = false;
    for (const node of nodes) {
      const depth = Math.max(0, ...node.after.map((parent) => (depths.get(parent) ?? -1) + 1));
      if (depth > (depths.get(node.name) ?? 0)) {
        depths.set(node.name, depth);
        isChanged = true;
      }
    }
    if (!isChanged) break;
  }
  return depths;
}

/** Of how many nodes the broadest step of a graph consists: that decides how high it is drawn. */
export function breadthOf(nodes: readonly Links[]): number {
  const counts = new Map<number, number>();
  for (const depth of depthsOf(nodes).values()) counts.set(depth, (counts.get(depth) ?? 0) + 1);
  return Math.max(1, ...counts.values());
}

/** How many steps a graph has. */
export function depthOf(nodes: readonly Links[]): number {
  return 1 + Math.max(0, ...depthsOf(nodes).values());
}

const AT_WORK: ReadonlySet<NodeState | undefined> = new Set(["INIT", "RUNNING", "FAIL"] as const);

/** The states that the parents of a node must have, by its trigger rule; null where the server alone can say. */
const WANTED: Record<TriggerRule, ReadonlySet<NodeState | undefined> | null> = {
  allSuccess: new Set(["SUCCESS"] as const),
  noneFailed: new Set(["SUCCESS", "SKIPPED"] as const),
  allDone: null,
  oneFailed: null,
};

/** Why a run cannot be done again from a node on: something there is at work, or it still waits for a parent. */
export function whyNoRerun(nodes: readonly GraphNode[], name: string): "atWork" | "parents" | null {
  const states = new Map(nodes.map((node) => [node.name, node.state]));
  const node = nodes.find((each) => each.name === name);
  const wanted = WANTED[node?.triggerRule ?? "allSuccess"];
  if (wanted && node?.after.some((parent) => !wanted.has(states.get(parent)))) return "parents";
  return [name, ...descendantsOf(nodes, name)].some((each) => AT_WORK.has(states.get(each))) ? "atWork" : null;
}
