import type { GraphNode } from "./paths";
import { depthsOf } from "./paths";

type Links = Pick<GraphNode, "name" | "after">;

/** A place in whole steps: the column a node stands in, and its row. */
export interface Cell {
  column: number;
  row: number;
}

const SWEEPS = 4;
/** A step with more nodes than this goes on in a further column, so that a broad graph is no thin line. */
const LEAST_ROWS = 10;

/**
 * The places of many nodes: in columns by their depth, and in each column near their parents. Dagre takes seconds for some hundred
 * nodes; this takes milliseconds.
 */
export function layersOf(nodes: readonly Links[]): Map<string, Cell> {
  const depths = depthsOf(nodes);
  const layers: Links[][] = [];
  for (const node of nodes) (layers[depths.get(node.name) ?? 0] ??= []).push(node);
  const filled = layers.filter((layer) => layer !== undefined);
  const ordered = orderedByParents(filled);
  const most = Math.max(LEAST_ROWS, Math.ceil(Math.sqrt(nodes.length)));
  const cells = new Map<string, Cell>();
  let column = 0;
  for (const layer of ordered) {
    const columns = Math.ceil(layer.length / most);
    const rows = Math.ceil(layer.length / columns);
    for (const [place, node] of layer.entries()) {
      const own = Math.floor(place / rows);
      cells.set(node.name, { column: column + own, row: (place % rows) - (Math.min(rows, layer.length - own * rows) - 1) / 2 });
    }
    column += columns;
  }
  return cells;
}

/** Each layer in the order of the middle of its parents, then of its children, a few times: fewer lines cross. */
function orderedByParents(layers: readonly (readonly Links[])[]): readonly (readonly Links[])[] {
  const parents = new Map(layers.flat().map((node) => [node.name, node.after]));
  const children = new Map<string, string[]>();
  for (const node of layers.flat()) for (const parent of node.after) children.set(parent, [...(children.get(parent) ?? []), node.name]);
  let ordered = layers;
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const near = sweep % 2 === 0 ? parents : children;
    const places = new Map(ordered.flatMap((layer) => layer.map((node, place): [string, number] => [node.name, place / Math.max(1, layer.length - 1)])));
    ordered = ordered.map((layer) => layer.toSorted((one, other) => middleOf(one, near, places) - middleOf(other, near, places)));
  }
  return ordered;
}

function middleOf(node: Links, near: ReadonlyMap<string, readonly string[]>, places: ReadonlyMap<string, number>): number {
  const found = (near.get(node.name) ?? []).flatMap((name) => places.get(name) ?? []);
  return found.length === 0 ? (places.get(node.name) ?? 0) : found.reduce((sum, place) => sum + place, 0) / found.length;
}
