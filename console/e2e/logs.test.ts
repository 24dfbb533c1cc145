import { beforeAll, expect, test } from "vitest";
import { visiting } from "./browser";
import { inAllLooks } from "./looks";
import { api, control, fresh, until } from "./server";

interface Found {
  state: string;
  attempts: { log: { level: string; message: string }[] }[];
}

let instance = "";
let letter = "";

beforeAll(async () => {
  const job = await control("worker");
  await until(async () => (await api<{ items: { name: string }[] }>("GET", "/api/v1/jobs?limit=500")).items.some((one) => one.name === job));
  instance = (await api<{ instance: { id: string } }>("POST", `/api/v1/jobs/${job}/trigger`, {}, fresh("once"))).instance.id;
  await until(async () => {
    const found = await api<Found>("GET", `/api/v1/instances/${instance}`);
    return found.state === "DEAD" && found.attempts[0]?.log.length === 43;
  });
  letter = await until(async () => (await api<{ items: { id: string }[] }>("GET", `/api/v1/dlq?instance=${instance}`)).items[0]?.id);
});

test("a log has a page of its own, as high as the window, with search and levels in its address", async () => {
  await inAllLooks([{ path: `/instances/${instance}/log`, shows: (page) => page.locator("ol [data-level=ERROR]").waitFor() }]);
  for (const [width, height] of [[1440, 900], [390, 844]] as const) {
    await visiting({ width, height, isAlone: true }, async (visit) => {
      const page = await visit.open(`/instances/${instance}`);
      await page.getByRole("link", { name: "Full page" }).click();
      await page.waitForURL(/\/log\?attempt=\d+$/);
      const log = page.getByRole("list", { name: "Log" }).and(page.locator("[data-full]")); // the page before has a log as well
      await log.locator("li").nth(42).waitFor();
      expect((await log.boundingBox())!.height).toBeGreaterThan(300);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
      expect(await log.evaluate((list) => list.scrollTop)).toBeGreaterThan(0);
      await visit.shoot(`log-${width}`);

      await page.getByLabel("Level", { exact: true }).filter({ visible: true }).first().click();
      await page.getByRole("option", { name: "WARNING and above" }).click();
      await page.getByText("2 of 43 lines").waitFor();
      await page.getByLabel("Search the log").fill("ledger");
      await page.getByText("1 of 43 lines").waitFor();
      await page.getByLabel("Wrap lines").uncheck();
      await page.waitForURL(/q=ledger&level=WARNING&wrap=no|level=WARNING&q=ledger&wrap=no/);
      const address = page.url();

      await visit.load(new URL(address).pathname + new URL(address).search);
      await page.getByText("1 of 43 lines").waitFor();
      expect(await log.locator("li").allInnerTexts()).toEqual([expect.stringContaining("the ledger answers slowly")]);
      const saved = page.waitForEvent("download");
      await page.getByRole("button", { name: "Download" }).click();
      expect((await saved).suggestedFilename()).toBe(`${instance}-1.log`);
    });
  }
});

test("tracebacks are folded by frame, those of the application before those of libraries, in logs, instances and dead letters", async () => {
  await visiting({ width: 1440, height: 900 }, async (visit) => {
    for (const path of [`/instances/${instance}`, `/dead-letters/${letter}`, `/instances/${instance}/log`]) {
      const page = await visit.open(path);
      const frames = page.locator("main details");
      await page.locator("main [data-frame=own]", { hasText: "talk" }).first().waitFor();
      const kinds = await frames.evaluateAll((found) => found.map((one) => (one as HTMLElement).dataset["frame"] ?? "group"));
      expect([path, kinds.indexOf("group") > kinds.indexOf("own")]).toEqual([path, true]);
      await page.getByText(/^\d+ library frames?$/).first().click();
      await page.locator("main [data-frame=library]", { hasText: /json\/(__init__|decoder)\.py:\d+/ }).first().waitFor();
      await visit.shoot(`trace${path.replaceAll("/", "-")}`);
    }
  });
});
