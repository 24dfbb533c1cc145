import { fireEvent, screen } from "@testing-library/react";
import { useState } from "react";
import { beforeEach, expect, test } from "vitest";
import { draw, inLanguage } from "@/testing/render";
import { startOf, TimeRange } from "./TimeRange";

beforeEach(() => inLanguage("en"));

function Field() {
  const [range, setRange] = useState<{ from: string | undefined; to: string | undefined }>({ from: undefined, to: "2026-11-18T09:00:00Z" });
  return (
    <>
      <TimeRange label="Failed" {...range} onChange={setRange} />
      <output>{JSON.stringify(range)}</output>
    </>
  );
}

test("a quick range begins at a fixed instant, a full second", () => {
  expect(startOf("hour", Date.parse("2026-11-18T09:30:00.250Z"))).toBe("2026-11-18T08:30:00Z");
  expect(startOf("week", Date.parse("2026-11-18T09:30:00Z"))).toBe("2026-11-11T09:30:00Z");
});

test("a quick range replaces both ends, and any time removes them", async () => {
  draw(<Field />);
  fireEvent.click(screen.getByRole("button", { name: /^Failed: until/ }));
  fireEvent.click(await screen.findByRole("button", { name: "Last hour" }));
  const { from, to } = JSON.parse(screen.getByRole("status").textContent) as { from: string; to?: string };
  expect(to).toBeUndefined();
  expect(Math.abs(Date.now() - 3_600_000 - Date.parse(from))).toBeLessThan(60_000);

  fireEvent.click(screen.getByRole("button", { name: /^Failed: since/ }));
  fireEvent.click(await screen.findByRole("button", { name: "Any time" }));
  expect(screen.getByRole("status").textContent).toBe("{}");
});
