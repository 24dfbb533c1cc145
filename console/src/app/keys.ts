import { MAKERS, PAGES } from "./pages";

export const SEARCH_KEY = /mac/i.test(navigator.userAgent) ? "⌘K" : "Ctrl K";

/** How long the second key of two may take. */
const PATIENCE_MS = 1_500;

/** What a key means: nothing yet, a page to go to, or the list of all keys. */
export type Meaning = { path: string } | "help" | null;

const PATHS: Readonly<Record<string, string>> = Object.fromEntries([
  ...PAGES.map((page) => [`g${page.key}`, page.path]),
  ...MAKERS.map((maker) => [`n${maker.key}`, maker.path]),
]);
const FIRSTS = new Set(Object.keys(PATHS).map((keys) => keys.charAt(0)));

/** Reads keys as they come; two belong together when the second follows soon. */
export function keyReader(): (key: string, at: number) => Meaning {
  let first: { key: string; at: number } | null = null;
  return (key, at) => {
    const before = first !== null && at - first.at <= PATIENCE_MS ? first.key : "";
    const path = PATHS[before + key];
    first = path === undefined && FIRSTS.has(key) ? { key, at } : null;
    if (path !== undefined) return { path };
    return key === "?" ? "help" : null;
  };
}

/** What has a use of its own for letters. */
const LISTENERS = "input, textarea, select, [contenteditable=true], [role=menu], [role=listbox]";

/** Whether a key is meant for what has the focus, or for a dialog that is open. */
export function isTaken(event: KeyboardEvent): boolean {
  const target = event.target instanceof HTMLElement ? event.target : null;
  return (
    event.defaultPrevented ||
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    (target?.closest(LISTENERS) ?? null) !== null ||
    document.querySelector("[role=dialog]") !== null
  );
}
