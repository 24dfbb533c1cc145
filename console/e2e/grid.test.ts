import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { visiting } from "./browser";
import { inAllLooks } from "./looks";
import { api, fresh, until } from "./server";
import { Target } from "./target";

interface Run {
  id: string;
  state: string;
}

let target: Target;
const workflow = fresh("settlement");
const [load, each, report] = [fresh("load"), fresh("each"), fresh("report")];
const runs: string[] = [];

async function ran(payload: unknown, state: string): Promise<string> {
  const { run } = await api<{ run: Run }>("POST", `/api/v1/workflows/${workflow}/trigger`, { payload }, fresh("once"));
  await until(async () => (await api<Run>("GET", `/api/v1/workflows/${workflow}/runs/${run.id}`)).state === state);
  return run.id;
}

beforeAll(async () => {
  target = await Target.start();
  for (const name of [load, each, report]) {
    await api("POST", "/api/v1/jobs", { name, target: { type: "http", url: target.url(`/${name}`) }, retry: { maxRetry: 0 } }, fresh("once"));
  }
  target.says(`/${load}`, 200, { output: ["a", "b", "c"] });
  const nodes = [{ name: "load", job: load }, { name: "each", job: each, map: { over: "load" } }, { name: "report", job: report, after: ["each"] }];
  await api("POST", "/api/v1/workflows", { name: workflow, nodes }, fresh("once"));
  runs.push(await ran({ day: 1, zone: "UTC" }, "SUCCESS"));
  target.says(`/${report}`, 400);
  runs.push(await ran({ day: 2, zone: "UTC" }, "BLOCKED"));
});
afterAll(() => target.stop());

const cell = (page: Page, node: string, run: string) => page.locator(`a[href="/workflows/${workflow}/runs/${run}?node=${node}"]`);

test("the grid shows the state of each node in each run by colour and shape, counts the items of maps, and follows new runs", async () => {
  const [first = "", second = ""] = runs;
  await inAllLooks([
    { path: `/workflows/${workflow}`, shows: (page) => cell(page, "report", second).waitFor() },
    { path: `/workflows/${workflow}/compare?left=${first}&right=${second}`, shows: (page) => page.locator("tr[data-different]").first().waitFor() },
    { path: `/workflows/${workflow}/nodes/load`, shows: (page) => page.locator("main table").getByRole("link", { name: first, exact: true }).first().waitFor() },
  ]);
  await visiting({ width: 1440, height: 900 }, async (visit) => {
    const page = await visit.open(`/workflows/${workflow}`);
    expect(await cell(page, "report", second).getAttribute("data-state")).toBe("DEAD");
    expect(await cell(page, "report", first).getAttribute("data-state")).toBe("SUCCESS");
    expect(await cell(page, "report", second).locator("path").getAttribute("d")).not.toBe(await cell(page, "report", first).locator("path").getAttribute("d"));
    await cell(page, "each", first).getByText("3", { exact: true }).waitFor();
    expect(await page.getByRole("grid", { name: /^Runs and nodes/ }).locator("[title], [aria-describedby]").count()).toBe(0);

    target.says(`/${report}`, 200);
    const third = await ran({ day: 3, zone: "UTC" }, "SUCCESS");
    await cell(page, "report", third).waitFor();
    await page.locator(`[data-state=SUCCESS][href="/workflows/${workflow}/runs/${third}"]`).waitFor();
    target.says(`/${report}`, 400);
  });
});

test("the grid is walked by the arrow keys, and Enter opens a run at its node", async () => {
  await visiting({ width: 1440, height: 900 }, async (visit) => {
    const page = await visit.open(`/workflows/${workflow}`);
    const newest = page.locator('[data-place="-1 0"]');
    await newest.focus();
    for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
    await page.locator('[data-place="2 1"]:focus').waitFor();
    expect(await page.locator("[data-place][tabindex='0']").count()).toBe(1);
    await page.getByText(/^report · Run \d+/).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(/runs\/\d+\?node=report$/);
    await page.getByRole("link", { name: "Trend of this node" }).click();
    await page.getByRole("heading", { level: 1, name: "report" }).waitFor();
    await page.getByText("HTTP_400").first().waitFor();
    await page.getByRole("img", { name: /^Duration/ }).waitFor();
  });
});

test("two selected runs are compared, and the address says which and how", async () => {
  const [first = "", second = ""] = runs;
  await visiting({ width: 1440, height: 900 }, async (visit) => {
    const page = await visit.open(`/workflows/${workflow}`);
    for (const run of [first, second]) await page.getByRole("row").filter({ has: page.getByRole("link", { name: run, exact: true }) }).getByRole("checkbox").check();
    await page.getByRole("link", { name: "Compare the selected runs" }).click();
    await page.waitForURL(`**/workflows/${workflow}/compare?left=${first}&right=${second}`);
    const nodes = page.getByRole("table", { name: "Nodes" });
    await nodes.getByRole("row").nth(3).waitFor();
    await page.getByLabel("Only differences").check();
    await page.waitForURL(/only=differences/);
    await nodes.getByRole("row").filter({ hasText: "report" }).getByText("HTTP_400").waitFor();
    expect(await page.getByRole("table", { name: "Payload differences" }).getByRole("row").nth(1).innerText()).toMatch(/^day\s+1\s+2$/);

    await visit.load(`/workflows/${workflow}/compare?left=${second}&right=${first}&only=differences`);
    expect(await page.getByRole("table", { name: "Payload differences" }).getByRole("row").nth(1).innerText()).toMatch(/^day\s+2\s+1$/);
  });
});

test("grid, comparison and trend fit a desktop and a phone", async () => {
  for (const [width, height] of [[1440, 900], [390, 844]] as const) {
    await visiting({ width, height, isAlone: true }, async (visit) => {
      for (const path of [`/workflows/${workflow}`, `/workflows/${workflow}/compare`, `/workflows/${workflow}/nodes/each`]) {
        const page = await visit.open(path);
        await page.locator("[data-place], main table").first().waitFor();
        expect([path, await page.evaluate(() => document.documentElement.scrollWidth)]).toEqual([path, width]);
        await visit.shoot(`fit-${width}${path.replaceAll("/", "-").replace(workflow, "w")}`);
      }
    });
  }
});
