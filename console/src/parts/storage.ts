const PREFIX = "horai-";

/** A text that this browser keeps under a name; null where it has none. */
export function keptText(name: string): string | null {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

/** Keep a text in this browser, or forget it. A browser that keeps nothing, or has no room, forgets it with the page. */
export function keepText(name: string, text: string | null): void {
  try {
    if (text === null) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, text);
  } catch {
    // See above.
  }
}
