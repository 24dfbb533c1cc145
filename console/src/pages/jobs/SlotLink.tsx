import type { ReactNode } from "react";
import { Go } from "@/parts";

/** Where the page of a job explains slots. */
export const EXPLAIN = "explain";

/** A slot of the job of the page; leads to its explanation, with an address that can be sent. */
export function SlotLink({ at, children }: { at: string; children: ReactNode }) {
  return (
    <Go to="." search={{ at }} hash={EXPLAIN} inherit>
      {children}
    </Go>
  );
}
