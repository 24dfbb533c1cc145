import { useMutation } from "@tanstack/react-query";
import { useRef } from "react";
import { ProblemError, Unreachable } from "@/api";

/** Of a request that must happen once: the header that names it. */
export interface OnceHeaders extends Record<string, string> {
  "Idempotency-Key": string;
}

/** Whether the server has decided. After a lost answer, or a failure of its own, the request may have taken effect. */
function isOutcome(error: unknown): boolean {
  return error instanceof ProblemError ? error.problem.status < 500 : !(error instanceof Unreachable);
}

/** `crypto.randomUUID` is missing where the console is served over plain HTTP by another name than loopback. */
export function freshKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `console-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** A mutation whose key stays the same until its outcome is known: a second click after a lost answer does nothing twice. */
export function useOnce<Body, Answer>(send: (body: Body, headers: OnceHeaders) => Promise<Answer>) {
  const named = useRef<{ text: string; key: string } | null>(null);
  return useMutation({
    mutationFn: async (body: Body) => {
      const text = JSON.stringify(body);
      if (named.current?.text !== text) {
        named.current = { text, key: freshKey() };
      }
      try {
        const answer = await send(body, { "Idempotency-Key": named.current.key });
        named.current = null;
        return answer;
      } catch (error) {
        if (isOutcome(error)) {
          named.current = null;
        }
        throw error;
      }
    },
  });
}
