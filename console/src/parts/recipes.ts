/** An action of the API, to be written down for a shell or a program. */
export interface Recipe {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** From the root: `/api/v1/jobs/coupon_job/pause`. */
  path: string;
  body?: unknown;
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

export function curlOf({ method, path, body, isOnce }: Recipe, origin = location.origin): string {
  const lines = [`curl -X ${method} ${quoted(origin + path)}`];
  if (isOnce) lines.push(`-H "Idempotency-Key: $(${FRESH_KEY})"`);
  if (body !== undefined) {
    lines.push(`-H 'Content-Type: application/json'`, `-d ${quoted(JSON.stringify(body))}`);
  }
  return lines.join(" \\\n  ");
}

/** With what every Python has: the verbs of our own package belong to the functions that a program declares. */
export function pythonOf({ method, path, body, isOnce }: Recipe, origin = location.origin): string {
  const headers = [`"Content-Type": "application/json"`, ...(isOnce ? [`"Idempotency-Key": str(uuid.uuid4())`] : [])];
  const data = body === undefined ? [] : [`    data=${literal(JSON.stringify(body))}.encode(),`];
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
