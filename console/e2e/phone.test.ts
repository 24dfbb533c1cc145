import type { Locator } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { visiting } from "./browser";
import { api, control, fresh, until } from "./server";
import { Target } from "./target";

const PHONE = { width: 390, height: 844, isAlone: true } as const;

let target: Target;
const job = fresh("charge_cards_of_all_customers");
const workflow = fresh("nightly_settlement");
let instance = "";
let run = "";

beforeAll(async () => {
  target = await Target.start();
  await api("POST", "/api/v1/jobs", { name: job, cron: "0 9 * * 1-5", timezone: "Europe/Berlin", target: { type: "http", url: "http://127.0.0.1:9/refused" }, retry: { maxRetry: 0 } }, fresh("once"));
  instance = (await api<{ instance: { id: string } }>("POST", `/api/v1/jobs/${job}/trigger`, {}, fresh("once"))).instance.id;
  await api("POST", "/api/v1/workflows", { name: workflow, nodes: [{ name: "first_of_all", job }, { name: "and_then_the_second", job, after: ["first_of_all"] }] }, fresh("once"));
  run = (await api<{ run: { id: string } }>("POST", `/api/v1/workflows/${workflow}/trigger`, {}, fresh("once"))).run.id;
  await until(async () => (await api<{ items: { id: string }[] }>("GET", `/api/v1/dlq?job=${job}`)).items[0]?.id);
});
afterAll(() => target.stop());

/** The texts, and the cells of maps, that stand over one another in a part of the page. */
function overlapping(part: Locator): Promise<string[]> {
  return part.evaluate((element) => {
    const drawn = [...element.querySelectorAll("*")].filter((each) => each.childElementCount === 0 && (each.textContent || each.tagName === "I"));
    const boxes = drawn.map((each) => {
      const range = document.createRange();
      range.selectNodeContents(each);
      const isWhole = !each.textContent || getComputedStyle(each).overflowX !== "visible"; // a text that is cut ends with its element
      return { element: each, text: each.textContent || "cell", box: (isWhole ? each : range).getBoundingClientRect() };
    });
    // It runs in the page, which knows nothing of this file.
    // oxlint-disable-next-line unicorn/consistent-function-scoping
    const areOver = (one: DOMRect, other: DOMRect) => Math.min(one.right, other.right) - Math.max(one.left, other.left) > 1 && Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 4;
    // A label that stands within its own bar is meant to.
    // oxlint-disable-next-line unicorn/consistent-function-scoping
    const isWithin = (bar: Element, label: Element) => bar.tagName === "I" && label.closest('[data-place="within"]')?.parentElement === bar.parentElement;
    return boxes.flatMap((one, place) => boxes.slice(place + 1).filter((other) => areOver(one.box, other.box) && !isWithin(one.element, other.element)).map((other) => `${one.text} / ${other.text}`));
  });
}

test("on a phone the steps of an instance, the scale of a run and the map of shards stand beside one another, and fields have room", async () => {
  await visiting(PHONE, async (visit) => {
    const page = await visit.open(`/instances/${instance}`);
    expect(await overlapping(page.getByRole("main").locator("ol").filter({ hasText: "Finished" }))).toEqual([]);
    await visit.open(`/workflows/${workflow}/runs/${run}`);
    expect(await overlapping(page.locator("section").filter({ has: page.getByRole("heading", { name: "Timeline" }) }))).toEqual([]);
    await visit.open("/queues");
    expect(await overlapping(page.locator("section").filter({ has: page.getByRole("heading", { name: "Shards" }) }))).toEqual([]);
    await visit.open(`/workflows/${workflow}/edit`);
    expect((await page.getByRole("group", { name: "Node 1" }).getByRole("textbox").first().boundingBox())!.width).toBeGreaterThan(100);
  });
});

test("on a phone every choice of the job form is read whole, and a blocked run says what blocks it beside its buttons", async () => {
  await visiting(PHONE, async (visit) => {
    const page = await visit.open("/jobs/new");
    const choices = page.getByRole("radiogroup");
    expect(await choices.count()).toBeGreaterThan(1);
    const cut = await choices.evaluateAll((groups) =>
      groups.flatMap((group) =>
        [...group.querySelectorAll("label")]
          .filter((label) => label.scrollWidth > label.clientWidth || label.getBoundingClientRect().right > group.getBoundingClientRect().right + 1 || label.getBoundingClientRect().bottom > group.getBoundingClientRect().bottom + 1)
          .map((label) => label.textContent),
      ),
    );
    expect(cut).toEqual([]);

    await visit.open(`/workflows/${workflow}/runs/${run}`);
    const cause = page.getByRole("alert").getByText("first_of_all").locator("..");
    await cause.waitFor();
    expect((await cause.boundingBox())!.width).toBeGreaterThan(200);
    await visit.shoot("phone-blocked-run");
  });
});

test("on a phone the menu has the zone, the language and the scheme, and dead letters show their errors", async () => {
  await visiting(PHONE, async (visit) => {
    const page = await visit.open(`/dead-letters?job=${job}`);
    const error = page.getByRole("grid").getByText("CONNECTION").first();
    await error.waitFor();
    expect((await error.boundingBox())!.x).toBeLessThan(300);

    await page.getByRole("button", { name: "Menu" }).click();
    for (const name of [/^Times shown in/, /^Language/, /^Colour scheme/]) {
      const box = (await page.getByRole("button", { name }).filter({ visible: true }).boundingBox())!;
      expect(box.x + box.width).toBeLessThanOrEqual(390);
    }
    await visit.shoot("phone-menu");
    await page.getByRole("button", { name: /^Language/ }).filter({ visible: true }).click();
    await page.getByRole("menuitem", { name: "中文" }).click();
    await page.getByRole("heading", { level: 1, name: "死信" }).waitFor();
  });
});

/** Presses what stands within the width of the phone; a button is high enough for a finger. */
async function press(button: Locator): Promise<void> {
  await button.scrollIntoViewIfNeeded();
  await button.waitFor();
  const box = (await button.boundingBox())!;
  const isLink = await button.evaluate((element) => element.tagName === "A");
  expect([box.x >= 0, box.x + box.width <= PHONE.width, isLink || box.height >= 24], await button.innerText()).toEqual([true, true, true]);
  await button.click();
}

const held = async (path: string) => api<{ paused?: boolean; status?: string; note: string | null }>("GET", path);

test("on a phone an operator pauses and resumes a queue and a job, with a note", async () => {
  const queue = fresh("reports_of_all_customers");
  await api("PUT", `/api/v1/queues/${queue}`, { maxConcurrency: 2 });
  await visiting(PHONE, async (visit) => {
    const page = await visit.open("/queues");
    const dialog = page.getByRole("dialog");
    const row = page.getByRole("row").filter({ hasText: queue });
    await press(row.getByRole("button", { name: "Pause" }));
    await dialog.getByLabel(/note|reason/i).fill("the bank is down");
    await visit.shoot("phone-pause-queue");
    await press(dialog.getByRole("button", { name: "Pause" }));
    await row.getByRole("button", { name: "Resume" }).waitFor();
    expect(await held(`/api/v1/queues/${queue}`)).toMatchObject({ paused: true, note: "the bank is down" });
    await press(row.getByRole("button", { name: "Resume" }));
    await press(dialog.getByRole("button", { name: "Resume" }));
    await row.getByRole("button", { name: "Pause" }).waitFor();
    expect((await held(`/api/v1/queues/${queue}`)).paused).toBe(false);

    await visit.open(`/jobs/${job}`);
    await press(page.getByRole("main").getByRole("button", { name: "Pause", exact: true }));
    await dialog.getByLabel(/note|reason/i).fill("the bank is down");
    await press(dialog.getByRole("button", { name: "Pause", exact: true }));
    await page.getByRole("main").getByText("the bank is down").first().waitFor();
    expect(await held(`/api/v1/jobs/${job}`)).toMatchObject({ status: "PAUSED", note: "the bank is down" });
    await press(page.getByRole("main").getByRole("button", { name: "Resume", exact: true }));
    await press(dialog.getByRole("button", { name: "Resume", exact: true }));
    await page.getByRole("main").getByRole("button", { name: "Pause", exact: true }).waitFor();
    expect((await held(`/api/v1/jobs/${job}`)).status).toBe("ACTIVE");
  });
});

test("on a phone an operator opens a dead letter from the list, reads its error and replays it", async () => {
  target.says("/mended", 500);
  const mended = fresh("mended");
  await api("POST", "/api/v1/jobs", { name: mended, target: { type: "http", url: target.url("/mended") }, retry: { maxRetry: 0 } }, fresh("once"));
  await api("POST", `/api/v1/jobs/${mended}/trigger`, {}, fresh("once"));
  const letter = await until(async () => (await api<{ items: { id: string }[] }>("GET", `/api/v1/dlq?job=${mended}`)).items[0]?.id);
  target.says("/mended", 200);
  await visiting(PHONE, async (visit) => {
    const page = await visit.open(`/dead-letters?job=${mended}`);
    const row = page.getByRole("grid").getByRole("row").filter({ hasText: mended });
    await row.getByText(/500/).first().click(); // the key, which is a link, is left out on a phone: the row leads to the letter
    await page.waitForURL(new RegExp(`/dead-letters/${letter}$`));
    await page.getByText(/500/).first().waitFor();
    await press(page.getByRole("main").getByRole("button", { name: "Replay" }));
    await visit.shoot("phone-replay");
    await press(page.getByRole("dialog").getByRole("button", { name: "Replay" }));
    await page.getByText("Replayed as", { exact: true }).waitFor();
  });
  await until(async () => (await api<{ items: { state: string }[] }>("GET", `/api/v1/jobs/${mended}/instances`)).items.some((one) => one.state === "SUCCESS"));
});

test("on a phone an operator goes from an instance to its log, narrows it and reads a traceback", async () => {
  const talking = await control("worker");
  await until(async () => (await api<{ items: { name: string }[] }>("GET", "/api/v1/jobs?limit=500")).items.some((one) => one.name === talking));
  const { id } = (await api<{ instance: { id: string } }>("POST", `/api/v1/jobs/${talking}/trigger`, {}, fresh("once"))).instance;
  await until(async () => (await api<{ state: string }>("GET", `/api/v1/instances/${id}`)).state === "DEAD");
  await visiting(PHONE, async (visit) => {
    const page = await visit.open(`/instances/${id}`);
    await press(page.getByRole("link", { name: "Full page" }));
    await page.waitForURL(/\/log\?attempt=\d+$/);
    const log = page.getByRole("list", { name: "Log" }).and(page.locator("[data-full]"));
    await log.locator("li").nth(42).waitFor();
    await page.getByLabel("Search the log").fill("ledger");
    await page.getByText("1 of 43 lines").waitFor();
    const line = log.getByText("the ledger answers slowly");
    await line.scrollIntoViewIfNeeded(); // it stands below the traceback
    const box = (await line.boundingBox())!;
    expect([box.x >= 0, box.x + box.width <= PHONE.width, box.y + box.height <= PHONE.height]).toEqual([true, true, true]);
    await visit.shoot("phone-log");
    await press(page.getByRole("button", { name: "Download" }));
  });
});
