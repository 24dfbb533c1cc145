import { expect, test } from "vitest";
import { STATES } from "@/generated/states";

function channel(hex: string): number {
  const value = Number.parseInt(hex, 16) / 255;
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
}

function luminance(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => channel(colour.slice(at, at + 2)));
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

function contrast(one: string, other: string): number {
  const [brighter, darker] = [luminance(one), luminance(other)].toSorted((a, b) => b - a);
  return (brighter! + 0.05) / (darker! + 0.05);
}

test("the word of a state can be read on its tint, and its mark be seen on the page", () => {
  const grounds = { light: "#ffffff", dark: "#14191b" };
  for (const state of STATES) {
    for (const scheme of ["light", "dark"] as const) {
      const { text, tint, solid } = state[scheme];
      expect(contrast(text, tint), `${state.name} ${scheme} text`).toBeGreaterThan(4.5);
      expect(contrast(solid, grounds[scheme]), `${state.name} ${scheme} mark`).toBeGreaterThan(3);
    }
  }
});

test("states differ in shape, not in colour alone", () => {
  expect(new Set(STATES.map((state) => state.shape)).size).toBe(STATES.length);
});
