import { beforeAll, expect, test } from "vitest";
import { visiting } from "./browser";
import { inAllLooks } from "./looks";
import { api, fresh } from "./server";

const word = fresh("hourly");
const nowhere = { type: "http", url: "http://127.0.0.1:9/nobody" };

/** Far enough that they do not fire while the tests run, and soon enough to be in the picture. */
const minute = new Date(Date.now() - 5 * 60_000).getUTCMinutes();

/** So many that their minute stands out from whatever the other visits have left to fire, three times over. */
async function crowdSize(): Promise<number> {
  const { peak } = await api<{ peak: { fires: number } | null }>("GET", "/api/v1/forecast?hours=2");
  return Math.max(70, 3 * (peak?.fires ?? 0));
}

beforeAll(async () => {
  const names = Array.from({ length: await crowdSize() }, (_, number) => `${word}-${number}`);
  while (names.length > 0) {
    const portion = names.splice(0, 25);
    await Promise.all(portion.map((name) => api("POST", "/api/v1/jobs", { name, cron: `${minute} * * * *`, target: nowhere }, fresh("once"))));
  }
});

test("the forecast is right in both languages and schemes", async () => {
  await inAllLooks([{ path: "/forecast", shows: (page) => page.getByRole("slider").waitFor() }]);
});

test("the forecast is read by keys, shows the hot spot and what would level it, and leads to its jobs", async () => {
  await visiting({}, async (visit) => {
    // An answer is kept for a minute: nobody else has asked for three days.
    const page = await visit.open("/forecast?hours=72");
    const map = page.getByRole("slider");
    await page.getByText(/With a jitter of \S+ on these \d+ jobs/).first().waitFor();
    await map.focus();
    await page.keyboard.press("Home");
    const first = await map.getAttribute("aria-valuetext");
    await page.keyboard.press("ArrowDown");
    expect(await map.getAttribute("aria-valuenow")).toBe("60");
    expect(await map.getAttribute("aria-valuetext")).not.toBe(first);
    await page.getByRole("link", { name: new RegExp(`^${word}-`) }).first().click();
    await page.waitForURL(`**/jobs/${word}-*/edit`);
    await visit.open("/forecast");
    await page.getByText("7 days").click();
    await page.locator("[role=slider][aria-valuemax='10079']").waitFor();
  });
});

test("a minute is opened by Enter, and the suggested jitter is given to its jobs", async () => {
  await visiting({}, async (visit) => {
    // As above: the answer for a day may be older than the crowd.
    const page = await visit.open("/forecast?hours=72");
    await page.getByRole("button", { name: /fires .* × avg/ }).first().waitFor();
    await page.getByRole("slider").focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "In this minute" }).waitFor();
    await page.getByRole("link", { name: new RegExp(`^${word}-`) }).first().waitFor();

    await page.getByRole("button", { name: "Apply jitter…" }).first().click();
    const asked = page.getByRole("dialog", { name: /^Apply a jitter of/ });
    await asked.getByRole("button", { name: /^Change \d+ jobs$/ }).click();
    await asked.getByText(/jobs changed/).waitFor();
    const { jitter } = await api<{ jitter: string | null }>("GET", `/api/v1/jobs/${word}-0`);
    expect(jitter).toMatch(/^\d+m$/);
  });
});
