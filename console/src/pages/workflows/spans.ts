import type { RunNodeOut, RunOut } from "@/api";
import { depthsOf } from "./graph/paths";

/** A node's time within its run, in parts of the whole; null before it has begun. */
export interface Span {
  from: number;
  width: number;
}

export interface Scale {
  start: number;
  length: number;
}

/** From the beginning of a run to its end, or to now while it goes on. */
export function scaleOf(run: RunOut, nodes: readonly RunNodeOut[], now: number): Scale {
  const start = new Date(run.createdAt).getTime();
  const ends = nodes.flatMap((node) => (node.finishedAt ? [new Date(node.finishedAt).getTime()] : []));
  const isOpen = nodes.some((node) => node.state === "RUNNING");
  return { start, length: Math.max(1, Math.max(start, ...ends, isOpen ? now : 0) - start) };
}

export function spanOf(node: RunNodeOut, scale: Scale, now: number): Span | null {
  if (!node.startedAt) return null;
  const from = new Date(node.startedAt).getTime();
  const to = node.state === "RUNNING" || !node.finishedAt ? now : new Date(node.finishedAt).getTime();
  const share = (at: number): number => Math.min(1, Math.max(0, (at - scale.start) / scale.length));
  return { from: share(from), width: Math.max(0, share(to) - share(from)) };
}

/** The room that a label needs beside its bar, as a part of the whole: a length on a phone. */
const ROOM = 0.3;

/** Where the label of a bar stands, in parts of the whole: after it, before it, or within it where neither side has room. */
export function labelOf(span: Span | null): { place: "after" | "before" | "within"; left: number; right: number } {
  if (!span) return { place: "after", left: 0, right: 0 };
  const end = span.from + span.width;
  if (1 - end >= ROOM) return { place: "after", left: end, right: 0 };
  if (span.from >= ROOM) return { place: "before", left: 0, right: 1 - span.from };
  return { place: "within", left: span.from, right: 1 - end };
}

/** Those that began first stand first; what has not begun stands behind them in the order of the graph. */
export function inOrder(nodes: readonly RunNodeOut[]): RunNodeOut[] {
  const depths = depthsOf(nodes);
  return nodes.toSorted((one, other) => {
    const [first, second] = [beginOf(one), beginOf(other)];
    return first === second ? (depths.get(one.name) ?? 0) - (depths.get(other.name) ?? 0) : first - second;
  });
}

function beginOf(node: RunNodeOut): number {
  return node.startedAt ? new Date(node.startedAt).getTime() : Infinity;
}
