import { afterAll, beforeAll, expect, test } from "vitest";
import { visiting } from "./browser";
import { inAllLooks, pressing } from "./looks";
import { api, fresh, until } from "./server";
import { HOSTILE, Target } from "./target";

interface Freshness {
  coverage: number | null;
  entities: number;
}

let target: Target;
const job = fresh("stock");
const LONG = "k".repeat(500);

const freshness = async (): Promise<Freshness> => api<Freshness>("GET", `/api/v1/jobs/${job}/refresh`);

beforeAll(async () => {
  target = await Target.start();
  const body = { name: job, every: "1d", refresh: { window: "10d" }, target: { type: "http", url: target.url("/stock") } };
  await api("POST", "/api/v1/jobs", body, fresh("once"));
  const items = [{ key: HOSTILE, payload: { text: HOSTILE } }, { key: LONG }];
  await api("POST", `/api/v1/jobs/${job}/entities/batch`, { items });
});
afterAll(() => target.stop());

test("refresh windows are right in both languages and schemes, with hostile keys in them", async () => {
  await inAllLooks([
    { path: "/refresh", shows: (page) => page.getByRole("link", { name: job }).waitFor() },
    {
      path: `/refresh/${job}`,
      shows: (page) => page.getByText(HOSTILE).first().waitFor(),
      dialogs: [
        pressing("refresh:add.act"),
        pressing("refresh:import.act", (page, say) => page.getByRole("textbox", { name: say("refresh:import.text") }).fill("key\nsku/9\n,8")),
        pressing("refresh:tick.act"),
      ],
    },
  ]);
});

test("entities are added, imported, filtered and removed, and a tick brings them up to date", async () => {
  await visiting({ width: 1600, height: 1000 }, async (visit) => {
    const page = await visit.open(`/refresh/${job}`);
    await page.getByRole("button", { name: "Add entity" }).click();
    await page.getByRole("dialog").getByLabel("Key", { exact: true }).fill("sku/1");
    await page.getByRole("dialog").getByRole("button", { name: "Add entity" }).click();
    await page.getByRole("gridcell", { name: "sku/1", exact: true }).waitFor();

    await page.getByRole("button", { name: "Import" }).click();
    await page.getByRole("dialog").getByLabel("Entities").fill('key,shelf\nsku/2,7\n,8\n"sku,3",9');
    await page.getByText("Line 3 has no key.").waitFor();
    await page.getByRole("button", { name: "Import 2 entities" }).click();
    await page.getByText("2 new, 0 existing.").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Close", exact: true }).last().click();

    await page.getByLabel("Key begins with").fill("sku");
    await page.getByText("3 in all").waitFor();
    expect(new URL(page.url()).searchParams.get("prefix")).toBe("sku");
    await page.getByRole("button", { name: "Actions for sku,3" }).click();
    await page.getByRole("menuitem", { name: "Remove" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await page.getByText("2 in all").waitFor();
    expect((await freshness()).entities).toBe(4);

    await page.getByRole("button", { name: "Run refresh" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Run refresh" }).click();
    await until(async () => (await freshness()).coverage === 1);
    await page.getByRole("img", { name: "Coverage 100 %" }).waitFor();
    await page.getByText("4 of 4").waitFor();
  });
});
