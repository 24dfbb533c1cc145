import { cleanup } from "@testing-library/react";
import { afterEach, vi } from "vitest";

/** Mantine asks the browser about its fonts before it measures a text; the imitation has none. */
Object.defineProperty(document, "fonts", { value: new EventTarget(), configurable: true });

afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});
