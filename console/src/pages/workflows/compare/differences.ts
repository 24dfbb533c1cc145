import type { RunNodeOut, RunOut } from "@/api";
import { depthsOf } from "../graph/paths";

/** A node in two runs, and how much longer it took in the second. */
export interface ComparedNode {
  name: string;
  left: RunNodeOut | null;
  right: RunNodeOut | null;
  /** Milliseconds of the right less those of the left; null unless both have ended. */
  change: number | null;
  isDifferent: boolean;
}

/** A duration that is this much longer or shorter is a difference, if it is also more than `LEAST` milliseconds. */
const SHARE = 0.2;
const LEAST = 100;

/** The nodes of two runs side by side, in the order of the graph of the second. */
export function comparedNodes(left: RunOut, right: RunOut): ComparedNode[] {
  const [before, after] = [left.nodes ?? [], right.nodes ?? []];
  const depths = depthsOf(after);
  const names = [...after.toSorted((one, other) => (depths.get(one.name) ?? 0) - (depths.get(other.name) ?? 0)), ...before].map((node) => node.name);
  const [olds, news] = [byName(before), byName(after)];
  return [...new Set(names)].map((name) => compared(name, olds.get(name) ?? null, news.get(name) ?? null));
}

function byName(nodes: readonly RunNodeOut[]): Map<string, RunNodeOut> {
  return new Map(nodes.map((node) => [node.name, node]));
}

function compared(name: string, left: RunNodeOut | null, right: RunNodeOut | null): ComparedNode {
  const [before, after] = [left?.durationMs ?? null, right?.durationMs ?? null];
  const change = before === null || after === null ? null : after - before;
  const isSlower = change !== null && Math.abs(change) > Math.max(LEAST, SHARE * (before ?? 0));
  return { name, left, right, change, isDifferent: left?.state !== right?.state || left?.attempt !== right?.attempt || isSlower };
}

/** A member of two JSON values that is not the same in both; undefined: not there. */
export interface Difference {
  path: string;
  left: unknown;
  right: unknown;
}

/** The members in which two JSON values differ, by path; at most `most` of them. */
export function differencesOf(left: unknown, right: unknown, most = 200): Difference[] {
  const found: Difference[] = [];
  const visit = (path: string, one: unknown, other: unknown): void => {
    if (found.length >= most || one === other) return;
    if (isParts(one) && isParts(other) && Array.isArray(one) === Array.isArray(other)) {
      const isList = Array.isArray(one);
      for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
        visit(isList ? `${path}[${key}]` : path ? `${path}.${key}` : key, own(one, key), own(other, key));
      }
      return;
    }
    found.push({ path, left: one, right: other });
  };
  visit("", left ?? undefined, right ?? undefined);
  return found;
}

function isParts(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function own(value: Record<string, unknown>, key: string): unknown {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}
