import { expect, test } from "vitest";
import { visiting } from "./browser";
import { api, fresh } from "./server";

/** Milliseconds to scroll. How smooth it is, is a figure of a quiet machine: `python -m benchmarks console`. */
const LASTS = 2_000;

test("a long list scrolls with few rows in the page", async () => {
  const job = fresh("bulk");
  await api("POST", "/api/v1/jobs", { name: job, target: { type: "http", url: "http://127.0.0.1:9/nobody" } }, fresh("once"));
  const items = Array.from({ length: 2_000 }, (_, number) => ({ key: String(number), executeTime: "2999-01-01T00:00:00Z" }));
  await api("POST", `/api/v1/jobs/${job}/instances/batch`, { items });
  await visiting({ isAlone: true }, async (visit) => {
    const page = await visit.open(`/instances?job=${job}`);
    const told = await page.evaluate(async (lasts) => {
      const scroller = document.querySelector("[role=grid]")!.parentElement!;
      let rows = 0;
      for (const ends = performance.now() + lasts; performance.now() < ends; ) {
        scroller.scrollTop += 60;
        await new Promise(requestAnimationFrame);
        rows = Math.max(rows, document.querySelectorAll("[role=row]").length);
      }
      return { rows, scrolled: scroller.scrollTop };
    }, LASTS);
    expect(told.scrolled).toBeGreaterThan(0);
    expect(told.rows).toBeLessThan(60);
  });
});
