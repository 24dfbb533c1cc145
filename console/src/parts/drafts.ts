import { useCallback, useState } from "react";
import { parseExactly } from "@/api";
import { useSession } from "@/live";

const PREFIX = "horai-draft:";
const NONE: readonly never[] = [];

/** The draft of a form, kept in this tab until it is sent or discarded, also when the page is left. */
export interface KeptDraft<Draft> {
  draft: Draft;
  change: (change: Draft | ((before: Draft) => Draft)) => void;
  /** Whether an earlier visit left it. */
  isRestored: boolean;
  /** Go back to the start; every input of the form is drawn again, under `revision`. */
  discard: () => void;
  /** It was sent: the next visit starts with an empty form. */
  forget: () => void;
  revision: number;
}

/** Keep the draft of a form under a name; each tenant has its own. The fields in `secrets` are never stored. */
export function useDraft<Draft extends object>(name: string, start: Draft, secrets: readonly (keyof Draft)[] = NONE): KeptDraft<Draft> {
  const tenant = useSession().data?.tenant ?? "";
  const key = `${PREFIX}${tenant}:${name}`;
  const [first] = useState(start);
  const [kept] = useState(() => read<Draft>(key));
  const [{ draft, revision, isRestored }, set] = useState({ draft: { ...first, ...kept }, revision: 0, isRestored: kept !== null });
  const change = useCallback(
    (wanted: Draft | ((before: Draft) => Draft)) =>
      set((before) => {
        const next = typeof wanted === "function" ? wanted(before.draft) : wanted;
        const told = without(next, secrets);
        write(key, JSON.stringify(told) === JSON.stringify(without(first, secrets)) ? null : told);
        return { ...before, draft: next };
      }),
    [key, first, secrets],
  );
  const forget = useCallback(() => write(key, null), [key]);
  const discard = useCallback(() => {
    write(key, null);
    set((before) => ({ draft: first, revision: before.revision + 1, isRestored: false }));
  }, [key, first]);
  return { draft, change, isRestored, discard, forget, revision };
}

/** Forget all drafts: the next user of this tab must not read them. */
export function clearDrafts(): void {
  for (const key of Object.keys(sessionStorage)) {
    if (key.startsWith(PREFIX)) sessionStorage.removeItem(key);
  }
}

function without<Draft extends object>(draft: Draft, secrets: readonly (keyof Draft)[]): Partial<Draft> {
  return Object.fromEntries(Object.entries(draft).filter(([name]) => !secrets.includes(name as keyof Draft))) as Partial<Draft>;
}

function read<Draft>(key: string): Draft | null {
  try {
    const text = sessionStorage.getItem(key);
    return text === null ? null : (parseExactly(text) as Draft);
  } catch {
    return null;
  }
}

/** A browser that keeps nothing, or has no room, loses the draft with the page, as before. */
function write(key: string, draft: unknown): void {
  try {
    if (draft === null) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify(draft));
  } catch {
    // See above.
  }
}
