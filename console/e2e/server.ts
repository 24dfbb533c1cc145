import { BASE, PATIENCE } from "./browser";

const CONTROL = process.env.HORAI_CONTROL ?? "";

/** Asks the API, as a program beside the browser. */
export async function api<T = unknown>(method: string, path: string, body?: unknown, once?: string, base = BASE): Promise<T> {
  const response = await fetch(base + path, {
    method,
    headers: { "Content-Type": "application/json", ...(once && { "Idempotency-Key": once }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  const text = await response.text();
  return (text ? JSON.parse(text) : undefined) as T;
}

/**
 * Starts a second server, or stops it; it comes back on the same address, which is the answer. The shared one stays. `read-only` makes its
 * database read-only, `writable` undoes it.
 * `closed` starts one that asks for keys: its address, a key of the platform and one of an admin. `users` starts one that also
 * signs users in with an identity provider, where Ada of the group staff is at the browser. `alone` starts one that no other test uses, `durable` one that runs
 * the functions of tests/console/durable_app.py. `worker` runs those of tests/console/talking_app.py on the shared server: the answer is the name of its job.
 */
export async function control(action: "stop" | "start" | "read-only" | "writable" | "closed" | "users" | "alone" | "durable" | "worker" | "archive"): Promise<string> {
  const response = await fetch(`${CONTROL}/${action}`, { method: "POST" });
  if (!response.ok) throw new Error(`the server did not ${action}: ${await response.text()}`);
  return response.text();
}

let serial = 0;

/** A name that no other test has. */
export function fresh(word: string): string {
  serial += 1;
  return `${word}-${process.pid}-${Date.now().toString(36)}-${serial}`;
}

/** Looks again and again until there is something; every test has a deadline of its own. */
export async function until<T>(look: () => Promise<T | null | undefined | false>, within = PATIENCE): Promise<T> {
  const deadline = Date.now() + within;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > deadline) throw new Error("it never came");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
