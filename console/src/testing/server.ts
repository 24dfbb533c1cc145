import { vi } from "vitest";

export interface Call {
  url: string;
  method: string;
  headers: Headers;
  body: unknown;
}

/** Stands in for the network: one path is answered in turn, the last answer for good, and what was asked is kept. */
export function network(path: string, ...answers: (() => Response | Promise<Response>)[]) {
  const calls: Call[] = [];
  vi.stubGlobal("fetch", async (url: string, init?: RequestInit) => {
    if (url !== path) return silence;
    const body = typeof init?.body === "string" ? (JSON.parse(init.body) as unknown) : undefined;
    calls.push({ url, method: init?.method ?? "GET", headers: new Headers(init?.headers), body });
    const answer = answers[Math.min(calls.length, answers.length) - 1];
    return answer ? answer() : silence;
  });
  return calls;
}

const silence = new Promise<Response>(() => undefined);

export const answers =
  (body: unknown, status = 200) =>
  (): Response =>
    new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json" } });

export const isDown = (): never => {
  throw new TypeError("Failed to fetch");
};
