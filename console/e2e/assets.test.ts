import { afterAll, beforeAll, expect, test } from "vitest";
import { visiting } from "./browser";
import { inAllLooks, pressing } from "./looks";
import { api, fresh, until } from "./server";
import { Target } from "./target";

interface Asset {
  updates: number;
  history: { id: string; metadata: unknown; instanceId: string | null; actor: string | null; started: string[] }[];
}

let target: Target;
const [asset, outside] = [`s3://lake/${fresh("sales")}`, fresh("prices")];
const [producer, consumer] = [fresh("load"), fresh("report")];
const path = (name: string) => `/assets/${encodeURIComponent(name)}`;
const read = (name: string) => api<Asset>("GET", `/api/v1${path(name)}`);
let instance = "";

beforeAll(async () => {
  target = await Target.start();
  target.says(`/${producer}`, 200, { output: { rows: 3 } });
  const job = (name: string, uses: object) => api("POST", "/api/v1/jobs", { name, target: { type: "http", url: target.url(`/${name}`) }, ...uses }, fresh("once"));
  await job(producer, { produces: [asset] });
  await job(consumer, { when: { any: [asset, outside] } });
  instance = (await api<{ instance: { id: string } }>("POST", `/api/v1/jobs/${producer}/trigger`, {}, fresh("once"))).instance.id;
  await until(async () => (await read(asset)).history[0]?.started.length);
});
afterAll(() => target.stop());

test("assets and an asset are right in both languages and schemes, with the dialog of an update", async () => {
  await inAllLooks([
    { path: "/assets", shows: (page) => page.locator(`.react-flow__node[data-id=":${asset}"]`).waitFor({ state: "attached" }) },
    { path: path(asset), shows: (page, say) => page.getByRole("grid", { name: say("assets:history.title") }).waitFor(), dialogs: [pressing("assets:update.act")] },
  ]);
});

test("the page of assets lists what updated them last and draws jobs and assets as a graph that leads to their pages", async () => {
  for (const [width, height] of [[1440, 900], [390, 844]] as const) {
    await visiting({ width, height, isAlone: true }, async (visit) => {
      const page = await visit.load("/assets");
      const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: asset, exact: true }) });
      await row.getByText(`#${instance}`).waitFor();
      expect(await row.getByRole("link").evaluateAll((links) => links.map((link) => link.getAttribute("href")))).toEqual([
        path(asset),
        `/jobs/${producer}`,
        `/instances/${instance}`,
        `/jobs/${producer}`,
        `/jobs/${consumer}`,
      ]);
      const shown = (await row.locator("time").first().getAttribute("title"))!;
      expect(shown).toContain("(Asia/Shanghai)");

      const edgesOf = () => page.locator(".react-flow__edge").evaluateAll((found) => found.map((edge) => edge.getAttribute("data-id")));
      const edges = await until(async () => (await edgesOf()).length > 0 && edgesOf());
      for (const link of [[producer, `:${asset}`], [`:${asset}`, consumer], [`:${outside}`, consumer]]) expect(edges).toContain(JSON.stringify(link));
      const nodes = page.locator(".react-flow__node button");
      expect(await nodes.filter({ hasText: asset }).getAttribute("data-kind")).toBe("asset");
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
      await visit.shoot(`assets-${width}`);

      await nodes.filter({ hasText: asset }).click();
      await page.getByRole("heading", { level: 1, name: asset }).waitFor();
      await page.getByRole("grid").getByText('{"rows":3}').waitFor();
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
      await visit.shoot(`asset-${width}`);
    });
  }
});

test("an update from outside is recorded once on the page of an asset, starts what waits for it, and is in the history", async () => {
  await visiting({ width: 1440, height: 900, isAlone: true, mayFail: /ERR_FAILED/ }, async (visit) => {
    const page = await visit.load(path(outside));
    await page.getByText("No job or workflow produces it.").waitFor();
    await page.getByRole("link", { name: consumer, exact: true }).waitFor();
    await page.getByRole("button", { name: "Record an update" }).click();
    const dialog = page.getByRole("dialog");
    const record = dialog.getByRole("button", { name: "Record an update" });
    await dialog.getByLabel("Metadata").fill('{"file": ');
    expect(await record.getAttribute("aria-disabled")).toBe("true");
    await dialog.getByLabel("Metadata").fill('{"file": "a.csv"}');
    await dialog.getByLabel("Data interval, start").fill("2026-11-15 08:00");
    await dialog.getByLabel("Data interval, start").blur();
    expect(await record.getAttribute("aria-disabled")).toBe("true");
    await dialog.getByLabel("Data interval, end").fill("2026-11-16 08:00");
    await dialog.getByLabel("Data interval, end").blur();

    // The answer to the first request is lost; the second click sends the same key.
    await page.route("**/updates", async (route) => {
      await route.fetch();
      await route.abort();
    }, { times: 1 });
    await record.click();
    await dialog.getByRole("alert").waitFor();
    await record.click();
    await dialog.waitFor({ state: "detached" });

    const found = await until(async () => {
      const { history } = await read(outside);
      return history[0]?.started.length ? history : null;
    });
    expect(found).toMatchObject([{ metadata: { file: "a.csv" }, instanceId: null, intervalStart: "2026-11-15T00:00:00Z", intervalEnd: "2026-11-16T00:00:00Z" }]);
    const history = page.getByRole("grid");
    await history.getByText("From outside").waitFor();
    await history.getByText('{"file":"a.csv"}').waitFor();
    await history.getByRole("link", { name: `#${found[0]!.started[0]}` }).click();
    await page.getByRole("link", { name: consumer, exact: true }).first().waitFor();
  });
});

test("the command palette and the keys lead to the page of assets", async () => {
  await visiting({}, async (visit) => {
    const page = await visit.open("/jobs");
    await page.keyboard.press("g");
    await page.keyboard.press("p");
    await page.getByRole("heading", { level: 1, name: "Assets" }).waitFor();
    await visit.open("/jobs");
    await page.keyboard.press("Control+k");
    await page.getByRole("textbox", { name: /^Search/ }).fill("asset");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Assets" }).waitFor();
  });
});
