import { expect, test } from "vitest";
import { visiting } from "./browser";
import { api, fresh } from "./server";

/** How smooth it is, is a figure of a quiet machine: `HORAI_LONG=1` asks for it, with 100,000 rows and for longer. */
const LONG = process.env.HORAI_LONG === "1";
const [DAYS, A_DAY, LASTS] = LONG ? [10, 10_000, 40_000] : [1, 2_000, 2_000];

test("a long list scrolls with few rows in the page, at 60 frames a second where that is asked for", { timeout: 180_000 }, async () => {
  const job = fresh("bulk");
  await api("POST", "/api/v1/jobs", { name: job, target: { type: "http", url: "http://127.0.0.1:9/nobody" } }, fresh("once"));
  for (let day = 1; day <= DAYS; day += 1) {
    const items = Array.from({ length: A_DAY }, (_, number) => ({ key: `${day}-${number}`, executeTime: `2999-01-${String(day).padStart(2, "0")}T00:00:00Z` }));
    await api("POST", `/api/v1/jobs/${job}/instances/batch`, { items });
  }
  await visiting({ isAlone: true }, async (visit) => {
    const page = await visit.open(`/instances?job=${job}`);
    const told = await page.evaluate(async (lasts) => {
      const scroller = document.querySelector("[role=grid]")!.parentElement!;
      const frames: number[] = [];
      let [rows, last] = [0, performance.now()];
      for (const ends = last + lasts; last < ends; ) {
        scroller.scrollTop += 60;
        const at = await new Promise<number>(requestAnimationFrame);
        frames.push(at - last);
        last = at;
        rows = Math.max(rows, document.querySelectorAll("[role=row]").length);
      }
      const inOrder = frames.toSorted((one, other) => one - other);
      const share = (part: number): number => inOrder[Math.floor(inOrder.length * part)] ?? 0;
      return { frames: frames.length, p50: share(0.5), p95: share(0.95), max: share(0.9999), rows, scrolled: scroller.scrollTop };
    }, LASTS);
    expect(told.scrolled).toBeGreaterThan(0);
    expect(told.p95, JSON.stringify(told)).toBeLessThan(LONG ? 20 : Infinity);
    expect(told.rows).toBeLessThan(60);
  });
});
