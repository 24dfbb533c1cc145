import dagre from "@dagrejs/dagre";
import { type Edge, MarkerType, type Node } from "@xyflow/react";
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

type Looks = Pick<NodeData, "onChoose" | "isUpright"> & { chosen: string | undefined };

/** Where each node stands: parents at the left of their children, or above them. */
export function placesOf(nodes: readonly GraphNode[], isUpright = false): Map<string, { x: number; y: number }> {
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

/** The lines between the nodes; red where a dead node holds what is behind it, or where they form a circle. */
export function edgesOf(nodes: readonly GraphNode[]): Edge[] {
  const states = new Map(nodes.map((node) => [node.name, node.state]));
  const held = heldBy(nodes);
  const circle = circleIn(nodes) ?? [];
  const isInCircle = (from: string, to: string): boolean => circle.some((name, place) => name === from && circle[place + 1] === to);
  return linksOf(nodes).map(([from, to]) => {
    const isBad = isInCircle(from, to) || (held.has(to) && (states.get(from) === "DEAD" || held.has(from)));
    const isDone = states.get(from) === "SUCCESS";
    const colour = isBad ? "var(--state-DEAD-solid)" : isDone ? "var(--state-SUCCESS-solid)" : "var(--horai-edge)";
    return {
      id: JSON.stringify([from, to]),
      source: from,
      target: to,
      focusable: false,
      style: { stroke: colour, strokeWidth: 1.5, ...(isBad && { strokeDasharray: "5 4" }) },
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
