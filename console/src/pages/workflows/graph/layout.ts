import dagre from "@dagrejs/dagre";
import { type Edge, MarkerType, type Node } from "@xyflow/react";
import { layersOf } from "./layers";
import { circleIn, type GraphNode, heldBy } from "./paths";

export const WIDTH = 184;
export const HEIGHT = 56;

export interface NodeData extends Record<string, unknown> {
  node: GraphNode;
  isHeld: boolean;
  isChosen: boolean;
  onChoose: ((name: string) => void) | undefined;
  isUpright: boolean;
}

/** With more nodes than this a graph has a search, a map of itself, and places from `layersOf`. */
const LARGE = 60;

export function isLarge(nodes: readonly unknown[]): boolean {
  return nodes.length > LARGE;
}

type Looks = Pick<NodeData, "onChoose" | "isUpright"> & { chosen: string | undefined };

/** Where each node stands: parents at the left of their children, or above them. */
export function placesOf(nodes: readonly GraphNode[], isUpright = false): Map<string, { x: number; y: number }> {
  if (isLarge(nodes)) {
    return new Map([...layersOf(nodes)].map(([name, { column, row }]) => [name, isUpright ? { x: row * (WIDTH + 20), y: column * (HEIGHT + 40) } : { x: column * (WIDTH + 56), y: row * (HEIGHT + 20) }]));
  }
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: isUpright ? "TB" : "LR", nodesep: 20, ranksep: 40 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) graph.setNode(node.name, { width: WIDTH, height: HEIGHT });
  for (const [from, to] of linksOf(nodes)) graph.setEdge(from, to);
  dagre.layout(graph);
  return new Map(
    nodes.map((node) => {
      const { x, y } = graph.node(node.name) as { x: number; y: number };
      return [node.name, { x: x - WIDTH / 2, y: y - HEIGHT / 2 }];
    }),
  );
}

export function linksOf(nodes: readonly GraphNode[]): [from: string, to: string][] {
  const names = new Set(nodes.map((node) => node.name));
  return nodes.flatMap((node) => node.after.filter((parent) => names.has(parent)).map((parent): [string, string] => [parent, node.name]));
}

type Kind = "held" | "skipped" | "chosen" | "done" | "open";

const STROKES: Record<Kind, { colour: string; width: number; dashes?: string }> = {
  held: { colour: "var(--state-DEAD-solid)", width: 1.5, dashes: "5 4" },
  skipped: { colour: "var(--state-CANCELLED-solid)", width: 1.5, dashes: "1 4" },
  chosen: { colour: "var(--mantine-primary-color-filled)", width: 3 },
  done: { colour: "var(--state-SUCCESS-solid)", width: 1.5 },
  open: { colour: "var(--horai-edge)", width: 1.5 },
};

/**
 * The lines between the nodes: dashed red where a dead node holds what is behind it, or where they form a circle; dotted from and to
 * what is skipped; thick where a node chose its branch.
 */
export function edgesOf(nodes: readonly GraphNode[]): Edge[] {
  const byName = new Map(nodes.map((node) => [node.name, node]));
  const held = heldBy(nodes);
  const circle = circleIn(nodes) ?? [];
  const isInCircle = (from: string, to: string): boolean => circle.some((name, place) => name === from && circle[place + 1] === to);
  const kindOf = (from: string, to: string): Kind => {
    const [parent, child] = [byName.get(from), byName.get(to)];
    if (isInCircle(from, to) || (held.has(to) && (parent?.state === "DEAD" || held.has(from)))) return "held";
    if (parent?.state === "SKIPPED" || child?.state === "SKIPPED") return "skipped";
    if (parent?.chosen?.includes(to)) return "chosen";
    return parent?.state === "SUCCESS" ? "done" : "open";
  };
  return linksOf(nodes).map(([from, to]) => {
    const kind = kindOf(from, to);
    const { colour, width, dashes } = STROKES[kind];
    return {
      id: JSON.stringify([from, to]),
      source: from,
      target: to,
      className: kind,
      focusable: false,
      style: { stroke: colour, strokeWidth: width, ...(dashes && { strokeDasharray: dashes }) },
      markerEnd: { type: MarkerType.ArrowClosed, color: colour, width: 16, height: 16 },
    };
  });
}

export function nodesOf(nodes: readonly GraphNode[], { chosen, onChoose, isUpright }: Looks): Node<NodeData>[] {
  const places = placesOf(nodes, isUpright);
  const held = heldBy(nodes);
  return nodes.map((node) => ({
    id: node.name,
    type: "job",
    position: places.get(node.name) ?? { x: 0, y: 0 },
    width: WIDTH,
    height: HEIGHT,
    style: { pointerEvents: "all" },
    data: { node, isHeld: held.has(node.name), isChosen: node.name === chosen, onChoose, isUpright },
  }));
}
