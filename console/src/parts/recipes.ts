/** An action of the API, to be written down for a shell or a program. */
export interface Recipe {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** From the root: `/api/v1/jobs/coupon_job/pause`. */
  path: string;
  body?: unknown;
  /** The body as JSON, where its numbers must stay as they are written. */
  written?: string;
  /** The route wants an `Idempotency-Key`. */
  isOnce?: boolean;
  /** The same with `horai …`, where the command line can. */
  cli?: string;
}

/** For a POSIX shell: everything inside is taken literally. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Whichever of the two the machine has; an empty key would be refused. */
const FRESH_KEY = "cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen";

/** The same with what somebody has noted to it. */
export function withNote(recipe: Recipe, field: "note" | "reason", text: string): Recipe {
  if (text === "") return recipe;
  const body = { ...(recipe.body as object | undefined), [field]: text };
  return { ...recipe, body, ...(recipe.cli && { cli: `${recipe.cli} --${field} ${quoted(text)}` }) };
}

function textOf({ body, written }: Recipe): string | undefined {
  return written ?? (body === undefined ? undefined : JSON.stringify(body));
}

export function curlOf(recipe: Recipe, origin = location.origin): string {
  const { method, path, isOnce } = recipe;
  const text = textOf(recipe);
  const lines = [`curl -X ${method} ${quoted(origin + path)}`];
  if (isOnce) lines.push(`-H "Idempotency-Key: $(${FRESH_KEY})"`);
  if (text !== undefined) {
    lines.push(`-H 'Content-Type: application/json'`, `-d ${quoted(text)}`);
  }
  return lines.join(" \\\n  ");
}

/** With what every Python has: the verbs of our own package belong to the functions that a program declares. */
export function pythonOf(recipe: Recipe, origin = location.origin): string {
  const { method, path, isOnce } = recipe;
  const text = textOf(recipe);
  const headers = [`"Content-Type": "application/json"`, ...(isOnce ? [`"Idempotency-Key": str(uuid.uuid4())`] : [])];
  const data = text === undefined ? [] : [`    data=${literal(text)}.encode(),`];
  return [
    `import urllib.request${isOnce ? "\nimport uuid" : ""}`,
    "",
    "request = urllib.request.Request(",
    `    ${literal(origin + path)},`,
    `    method=${literal(method)},`,
    ...data,
    `    headers={${headers.join(", ")}},`,
    ")",
    "with urllib.request.urlopen(request) as answer:",
    "    print(answer.read().decode())",
  ].join("\n");
}

/** A Python literal: JSON's own quoting is valid there. */
function literal(text: string): string {
  return JSON.stringify(text);
}

/** The value of a flag, or of one that is given several times. */
type Value = string | number | boolean | null | undefined | readonly (string | number)[];

/**
 * A command with its flags. `true` is a flag without a value; what is not set is left out. The answer is undefined if the command line has no
 * flag for a field that is set: `flags` names those that it has.
 */
export function withFlags(command: string, given: Readonly<Record<string, unknown>>, flags: Readonly<Record<string, string>>): string | undefined {
  const set = Object.entries(given as Record<string, Value>).filter(([, value]) => value !== undefined && value !== null && value !== "");
  if (set.some(([field]) => flags[field] === undefined)) return undefined;
  return [command, ...set.flatMap(([field, value]) => flagOf(flags[field] ?? "", value))].join(" ");
}

function flagOf(flag: string, value: Value): string[] {
  if (value === true) return [flag];
  if (value === false) return [];
  const values = Array.isArray(value) ? (value as readonly (string | number)[]) : [value as string | number];
  return values.map((each) => `${flag} ${quoted(String(each))}`);
}

/** A command for each of several objects: `horai dlq replay 7`, or a loop over them. */
export function forEach(command: string, names: readonly string[], rest = ""): string {
  const [only = ""] = names;
  if (names.length === 1) return `${command} ${quoted(only)}${rest}`;
  return `for each in ${names.map(quoted).join(" ")}; do ${command} "$each"${rest}; done`;
}

/** A command that reads a document from the shell: `echo '{…}' | horai jobs create --file -`. */
export function piped(document: unknown, command: string): string {
  return `echo ${quoted(typeof document === "string" ? document : JSON.stringify(document))} | ${command}`;
}
