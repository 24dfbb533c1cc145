import { BASE, PATIENCE } from "./browser";

const CONTROL = process.env.HORAI_CONTROL ?? "";

/** Asks the API, as a program beside the browser. */
export async function api<T = unknown>(method: string, path: string, body?: unknown, once?: string): Promise<T> {
  const response = await fetch(BASE + path, {
    method,
    headers: { "Content-Type": "application/json", ...(once && { "Idempotency-Key": once }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  const text = await response.text();
  return (text ? JSON.parse(text) : undefined) as T;
}

/**
 * Starts a second server, or stops it; it comes back on the same address, which is the answer. The shared one stays.
 * `closed` starts one that asks for keys: its address, a key of the platform and one of an admin. `users` starts one that also
 * signs users in with an identity provider, where Ada of the group staff is at the browser.
 */
export async function control(action: "stop" | "start" | "closed" | "users"): Promise<string> {
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
