import { readFileSync } from "node:fs";
import { parseAst } from "vite";

export interface Node {
  type: string;
  [name: string]: unknown;
}

/** Every node below, itself included. */
export function nodesOf(node: unknown): Node[] {
  if (Array.isArray(node)) return node.flatMap(nodesOf);
  if (typeof node !== "object" || node === null) return [];
  const below = Object.values(node).flatMap(nodesOf);
  return "type" in node ? [node as Node, ...below] : below;
}

/** The nodes of a source with JSX. */
export function nodesIn(file: URL): Node[] {
  return nodesOf(parseAst(readFileSync(file, "utf8"), { lang: "tsx" }));
}
