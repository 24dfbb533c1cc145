import type { Problem } from "@/generated/model";
import { parseExactly } from "./exact";

/** The server answered with a problem (RFC 9457). */
export class ProblemError extends Error {
  override readonly name = "ProblemError";

  constructor(
    readonly problem: Problem,
    /** Seconds after which another try makes sense, where the server said so. */
    readonly retryAfter: number | null = null,
  ) {
    super(problem.detail);
  }
}

/** The server did not answer: what was asked for may or may not have been done. */
export class Unreachable extends Error {
  override readonly name = "Unreachable";
}

/** Every call of the generated client goes through here. */
export async function request<T>(url: string, init?: RequestInit): Promise<T> {
  const response = await reach(url, init);
  const text = await response.text();
  if (!response.ok) {
    const wait = Number(response.headers.get("Retry-After"));
    throw new ProblemError(problemIn(text, response), Number.isFinite(wait) && wait > 0 ? wait : null);
  }
  return (text === "" ? undefined : parseExactly(text)) as T;
}

async function reach(url: string, init?: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === "AbortError") {
      throw cause;
    }
    throw new Unreachable(String(cause), { cause });
  }
}

function problemIn(text: string, response: Response): Problem {
  try {
    const found = JSON.parse(text) as Problem;
    if (typeof found.detail === "string") {
      return found;
    }
  } catch {
    // A proxy in between answered with something else.
  }
  const title = response.statusText || `HTTP ${response.status}`;
  return { type: "about:blank", title, status: response.status, code: `HTTP_${response.status}`, detail: text || title };
}
