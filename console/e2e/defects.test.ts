import { beforeAll, expect, test } from "vitest";
import { type Visit, visiting } from "./browser";
import { api, control, fresh } from "./server";

const DESKTOP = { width: 1440, height: 900, isAlone: true } as const;
const [job, workflow] = [fresh("charge_cards_of_all_customers"), fresh("nightly_settlement_of_all_customers")];

beforeAll(async () => {
  await control("worker");
  await api("POST", "/api/v1/jobs", { name: job, target: { type: "http", url: "http://127.0.0.1:9/refused" }, retry: { maxRetry: 0 } }, fresh("once"));
  const names = Array.from({ length: 8 }, (_, number) => `step_number_${number}_of_the_settlement`);
  const nodes = names.map((name, number) => ({ name, job, ...(number > 0 && { after: [names[number - 1]] }) }));
  await api("POST", "/api/v1/workflows", { name: workflow, nodes }, fresh("once"));
  await api("POST", `/api/v1/jobs/${job}/trigger`, {}, fresh("once"));
});

/** Elements that stand out of the page, or whose text stands out of their cell into the next one. */
async function overflowing(visit: Visit): Promise<string[]> {
  return visit.page.evaluate(() => {
    const found = document.documentElement.scrollWidth > innerWidth ? [`the page has ${document.documentElement.scrollWidth} px`] : [];
    for (const cell of document.querySelectorAll<HTMLElement>("main td, main th, main [role=cell], main [role=gridcell]")) {
      if (cell.scrollWidth > cell.clientWidth + 1 && getComputedStyle(cell).overflowX === "visible") found.push(`${cell.className}: ${cell.textContent?.slice(0, 60)}`);
    }
    return found;
  });
}

test("at 1440 px no page is wider than the window, and no cell stands in the next one", async () => {
  await visiting(DESKTOP, async (visit) => {
    const found: Record<string, string[]> = {};
    for (const path of ["/queues", "/instances", "/jobs", "/dead-letters", "/workflows", `/workflows/${workflow}`, `/workflows/${workflow}/edit`, "/reconcilers", "/alerts"]) {
      await visit.open(path);
      const wide = await overflowing(visit);
      if (wide.length > 0) found[path] = wide;
      await visit.shoot(`desktop${path.replaceAll(/[/?=]/g, "-")}`);
    }
    expect(found).toEqual({});
  });
});

test("the primary button of a page is the last one", async () => {
  await visiting({}, async (visit) => {
    for (const [path, name] of [["/jobs", "New job"], ["/workflows", "New workflow"], [`/jobs/${job}`, "Run now"], [`/workflows/${workflow}`, "Run now"]] as const) {
      const page = await visit.open(path);
      const main = page.getByRole("main");
      const primary = main.getByRole("link", { name, exact: true }).or(main.getByRole("button", { name, exact: true })).first();
      await primary.waitFor();
      const right = (await primary.boundingBox())!;
      const others = await main.getByRole("button").filter({ visible: true }).all();
      const inRow = (await Promise.all(others.map((each) => each.boundingBox()))).filter((box) => box !== null && Math.abs(box.y - right.y) < 12);
      expect(Math.max(...inRow.map((box) => box!.x + box!.width), 0), path).toBeLessThanOrEqual(right.x + right.width + 1);
    }
  });
});
