import { cleanup, configure } from "@testing-library/react";
import { afterEach, vi } from "vitest";

/** Mantine asks the browser about its fonts before it measures a text; the imitation has none. */
Object.defineProperty(document, "fonts", { value: new EventTarget(), configurable: true });

/** A busy machine takes longer than the usual second to load what a part loads when it is first drawn. */
configure({ asyncUtilTimeout: 20_000 });

afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});
