import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseAllDocuments } from "yaml";

/** A document as JSON text, and the line of each of its values by path, such as `retry.base`. */
export interface YamlDocument {
  text: string;
  lines: Map<string, number>;
}

/** A text that is not YAML, or means nothing here. */
export class YamlFault extends Error {
  constructor(
    readonly reason: FaultReason,
    readonly line: number,
    readonly detail = "",
  ) {
    super(detail || reason);
  }
}

export type FaultReason = "syntax" | "mapping" | "alias" | "name";

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const WORDS: Record<string, string> = { "": "null", "~": "null", null: "null", true: "true", false: "false" };

/** The documents of a YAML text. Plain scalars mean what they mean in JSON; a number stays as it is written. */
export function load(text: string): YamlDocument[] {
  const counter = new LineCounter();
  const found = parseAllDocuments(text, { lineCounter: counter, version: "1.2", merge: false, strict: true });
  const documents = Array.isArray(found) ? found : [];
  const lineOf = (node: Node | null): number => counter.linePos(node?.range?.[0] ?? 0).line;
  return documents.flatMap((document) => {
    const [error] = document.errors;
    if (error) throw new YamlFault("syntax", error.linePos?.[0].line ?? 1, error.message.split(" at line ")[0]);
    if (document.contents === null || (isScalar(document.contents) && document.contents.source === "")) return [];
    if (!isMap(document.contents)) throw new YamlFault("mapping", lineOf(document.contents));
    const lines = new Map<string, number>();
    return [{ text: jsonOf(document.contents, "", lines, lineOf), lines }];
  });
}

function jsonOf(node: Node | null, path: string, lines: Map<string, number>, lineOf: (node: Node | null) => number): string {
  if (!lines.has(path)) lines.set(path, lineOf(node));
  const below = (name: string | number): string => (path === "" ? String(name) : `${path}.${name}`);
  if (isAlias(node)) throw new YamlFault("alias", lineOf(node));
  if (isSeq(node)) return `[${node.items.map((item, place) => jsonOf(item as Node, below(place), lines, lineOf)).join(",")}]`;
  if (isMap(node)) {
    const members = node.items.map(({ key, value }) => {
      if (!isScalar(key)) throw new YamlFault("name", lineOf(key as Node));
      const name = key.source ?? String(key.value);
      lines.set(below(name), lineOf(key));
      return `${JSON.stringify(name)}:${jsonOf(value as Node | null, below(name), lines, lineOf)}`;
    });
    return `{${members.join(",")}}`;
  }
  if (!isScalar(node)) return "null";
  const source = node.source ?? "";
  if (node.type === "PLAIN") return WORDS[source] ?? (NUMBER.test(source) ? source : JSON.stringify(source));
  return JSON.stringify(source);
}

/** The line of a field, or of the closest value around it. */
export function lineAt(document: YamlDocument, field: string): number {
  let path = field;
  while (path !== "" && !document.lines.has(path)) path = path.includes(".") ? path.slice(0, path.lastIndexOf(".")) : "";
  return document.lines.get(path) ?? 1;
}

/** A JSON value as the server sent it; its numbers are texts of their own. */
export type Literal = string | boolean | null | NumberText | Literal[] | { [name: string]: Literal };

export class NumberText {
  constructor(readonly text: string) {}
}

function keptAsWritten(_name: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === "number" ? new NumberText(context?.source ?? String(value)) : value;
}

/** JSON whose numbers stay as they are written. */
export function parseLiterally(text: string): Literal {
  return JSON.parse(text, keptAsWritten as (name: string, value: unknown) => unknown) as Literal;
}

/** Definitions as a stream of YAML documents. */
export function dump(values: readonly { [name: string]: Literal }[]): string {
  return values.map((value) => `---\n${block(value, "")}`).join("");
}

const PLAIN = /^[\p{L}][\p{L}\p{N} _./@-]*(?<! )$/u;
const RESERVED = /^(true|false|null|yes|no|on|off|y|n)$/i;

function block(value: { [name: string]: Literal }, indent: string): string {
  return Object.entries(value)
    .map(([name, each]) => `${indent}${scalar(name)}:${after(each, indent)}`)
    .join("");
}

function after(value: Literal, indent: string): string {
  if (Array.isArray(value) && value.length > 0) {
    return `\n${value.map((each) => `${indent}- ${listed(each, `${indent}  `)}`).join("")}`;
  }
  if (isObject(value) && Object.keys(value).length > 0) return `\n${block(value, `${indent}  `)}`;
  return ` ${flat(value)}\n`;
}

function listed(value: Literal, indent: string): string {
  if (isObject(value) && Object.keys(value).length > 0) return block(value, indent).slice(indent.length);
  return Array.isArray(value) && value.length > 0 ? `${JSON.stringify(value, plainNumbers)}\n` : `${flat(value)}\n`;
}

function flat(value: Literal): string {
  if (Array.isArray(value)) return "[]";
  if (isObject(value)) return "{}";
  if (value instanceof NumberText) return value.text;
  return typeof value === "string" ? scalar(value) : String(value);
}

/** Lists within lists are rare: they are written as JSON. */
function plainNumbers(_name: string, value: unknown): unknown {
  return value instanceof NumberText ? Number(value.text) : value;
}

function scalar(text: string): string {
  return PLAIN.test(text) && !RESERVED.test(text) ? text : JSON.stringify(text);
}

function isObject(value: Literal): value is { [name: string]: Literal } {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof NumberText);
}
