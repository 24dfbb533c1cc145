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
  /** The same with the Python package; without it, plain urllib. */
  python?: string;
}

/** For a POSIX shell: everything inside is taken literally. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

export function curlOf({ method, path, body, isOnce }: Recipe, origin = location.origin): string {
  const lines = [`curl -X ${method} ${quoted(origin + path)}`];
  if (isOnce) lines.push(`-H "Idempotency-Key: $(uuidgen)"`);
  if (body !== undefined) {
    lines.push(`-H 'Content-Type: application/json'`, `-d ${quoted(JSON.stringify(body))}`);
  }
  return lines.join(" \\\n  ");
}

export function pythonOf({ method, path, body, isOnce }: Recipe, origin = location.origin): string {
  const headers = [`"Content-Type": "application/json"`, ...(isOnce ? [`"Idempotency-Key": str(uuid.uuid4())`] : [])];
  const data = body === undefined ? [] : [`    data=${literal(JSON.stringify(body))}.encode(),`];
  return [
    `import json, urllib.request${isOnce ? ", uuid" : ""}`,
    "",
    "request = urllib.request.Request(",
    `    ${literal(origin + path)},`,
    `    method=${literal(method)},`,
    ...data,
    `    headers={${headers.join(", ")}},`,
    ")",
    "print(json.load(urllib.request.urlopen(request)))",
  ].join("\n");
}

/** A Python literal: JSON's own quoting is valid there. */
function literal(text: string): string {
  return JSON.stringify(text);
}
