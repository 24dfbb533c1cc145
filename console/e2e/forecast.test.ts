import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { visiting } from "./browser";
import { inAllLooks, speaker } from "./looks";
import { api, fresh, until } from "./server";

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
    // The jobs are changed one after the other.
    await asked.getByText(/jobs changed/).waitFor({ timeout: 150_000 });
    const { jitter } = await api<{ jitter: string | null }>("GET", `/api/v1/jobs/${word}-0`);
    expect(jitter).toMatch(/^\d+m$/);
  });
});

/** The colour of hypothetical jobs in the light scheme: `--horai-trial`. */
const TRIAL = [111, 66, 181];

async function tryJobs(page: Page, cron: string, jobs: number, language: "en" | "zh-CN" = "en"): Promise<void> {
  const say = speaker(language);
  await page.getByRole("button", { name: say("forecast:whatIf.open") }).click();
  await page.getByRole("textbox", { name: say("schedules:cron") }).fill(cron);
  await page.getByLabel(say("forecast:whatIf.jobs")).fill(String(jobs));
  await page.getByRole("button", { name: say("forecast:whatIf.show") }).click();
}

/** Whether the map has cells of this colour. It runs in the page. */
async function isPainted(page: Page, colour: readonly number[]): Promise<boolean> {
  return page.evaluate((wanted) => {
    const canvas = document.querySelector<HTMLCanvasElement>("[role=slider] canvas")!;
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true })!;
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    for (let at = 0; at < data.length; at += 4) if (wanted.every((part, place) => data[at + place] === part)) return true;
    return false;
  }, colour);
}

async function overflow(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
}

test("hypothetical jobs are painted in a colour of their own, raise the busiest minute, and are not saved", async () => {
  const jobs = 90_000;
  const writes: string[] = []; // other visits make jobs meanwhile: their number says nothing
  await visiting({ width: 1440, height: 900 }, async (visit) => {
    const page = await visit.open("/forecast");
    page.on("request", (request) => request.method() !== "GET" && writes.push(`${request.method()} ${request.url()}`));
    await page.getByRole("slider").waitFor();
    expect(await isPainted(page, TRIAL)).toBe(false);
    await tryJobs(page, "7 7 * * *", jobs);
    const effect = page.getByRole("main").getByRole("status").filter({ hasText: "Busiest minute with them" });
    await effect.getByText("90,000", { exact: true }).first().waitFor();
    await page.getByRole("img", { name: /^Fires per minute: With hypothetical jobs/ }).waitFor();
    await expect.poll(() => isPainted(page, TRIAL)).toBe(true);
    expect(await overflow(page)).toBe(0);
    await visit.shoot("forecast-what-if");

    await page.getByRole("button", { name: "Remove", exact: true }).click();
    await effect.waitFor({ state: "detached" });
    await expect.poll(() => isPainted(page, TRIAL)).toBe(false);
  });
  expect(writes).toEqual([]);
});

test("an invalid hypothetical schedule is refused at its field", async () => {
  await visiting({ mayFail: /422/ }, async (visit) => {
    const page = await visit.open("/forecast");
    await tryJobs(page, "61 * * * *", 5);
    await page.getByText(/61/).filter({ visible: true }).last().waitFor();
    await page.locator("input[aria-invalid=true]").waitFor();
    expect(await page.getByText("Busiest minute with them").count()).toBe(0);
  });
});

test("the what-if fits a phone, in Chinese too", async () => {
  for (const language of ["en", "zh-CN"] as const) {
    await visiting({ language, width: 390, height: 844, isAlone: true }, async (visit) => {
      const say = speaker(language);
      const page = await visit.open("/forecast");
      await tryJobs(page, "7 7 * * *", 5_000, language);
      await page.getByText(say("forecast:whatIf.after")).waitFor();
      expect(await overflow(page)).toBe(0);
      await visit.expectAccessible();
      await visit.shoot(`phone-forecast-what-if-${language}`);
    });
  }
});

interface Measured {
  highestMeasured: { starts: number; days: number } | null;
}

test("the highest measured number of starts is a line with its source, and what would cross it is counted", async () => {
  await api("POST", `/api/v1/jobs/${word}-1/trigger`, {}, fresh("once"));
  // An answer is kept for a minute, and may be older than the start.
  const { starts, days } = await until(async () => (await api<Measured>("GET", "/api/v1/forecast?hours=168")).highestMeasured, 90_000);
  await visiting({ width: 1440, height: 900 }, async (visit) => {
    const page = await visit.open("/forecast?hours=168");
    await page.getByText(`Dashed line: ${starts.toLocaleString("en")} starts a minute, the highest measured in the last ${days} days`).waitFor();
    await tryJobs(page, "7 7 * * *", 90_000);
    await page.getByText(/^\d+ minutes exceed the highest measured/).waitFor();
    expect(await overflow(page)).toBe(0);
    await page.getByRole("heading", { name: "Fires over time" }).scrollIntoViewIfNeeded();
    await visit.shoot("forecast-measured");
  });
});
