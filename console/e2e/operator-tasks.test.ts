import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { BASE, visiting } from "./browser";
import { api as asked, control, fresh, until } from "./server";
import { Target } from "./target";

/**
 * The ten tasks of an operator, each from the overview. At most four clicks, plus typing: the keys of the console are typing. Each test states
 * how many it takes, so that one more is noticed.
 */
const MOST_CLICKS = 4;

let target: Target;
let base: string;
const [stuck, narrow] = [fresh("export"), fresh("narrow")];
const [first, crowded] = [fresh("first"), fresh("crowded")];

/** Asks the server of these tests: what others do would be on its overview, too. */
async function api<T = unknown>(method: string, path: string, body?: unknown, once?: string): Promise<T> {
  return asked<T>(method, path, body, once, base);
}

/** Counts the clicks of the pointer in a page. */
async function counting(page: Page): Promise<() => Promise<number>> {
  await page.evaluate(() => {
    const counted = globalThis as unknown as { clicks: number };
    counted.clicks = 0;
    document.addEventListener("pointerdown", () => (counted.clicks += 1), { capture: true });
  });
  return () => page.evaluate(() => (globalThis as unknown as { clicks: number }).clicks);
}

/** Does a task from the overview; returns how many clicks it took. */
async function clicksOf(task: (page: Page, clicks: () => Promise<number>) => Promise<void>, at = base): Promise<number> {
  return visiting({ base: at, isAlone: true, height: 1400 }, async (visit) => {
    const page = await visit.open("/");
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    const clicks = await counting(page);
    await task(page, clicks);
    return clicks();
  });
}

function expectClicks(clicks: number, expected: number): void {
  expect(clicks).toBe(expected);
  expect(clicks).toBeLessThanOrEqual(MOST_CLICKS);
}

/** Types into the palette and opens its first result: no click. */
async function goTo(page: Page, name: string): Promise<void> {
  await page.keyboard.press("Control+k");
  await page.getByPlaceholder(/^Search/).fill(name);
  await page.getByRole("dialog").getByRole("button", { name, exact: true }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name }).waitFor();
}

async function create(name: string, fields: object): Promise<void> {
  await api("POST", "/api/v1/jobs", { name, target: { type: "http", url: target.url("/ok") }, ...fields });
}

const dead = async (job: string): Promise<number> => (await api<{ items: unknown[] }>("GET", `/api/v1/instances?job=${job}&state=DEAD`)).items.length;

async function killed(job: string, count: number): Promise<void> {
  target.says("/gone", 410);
  await create(job, { target: { type: "http", url: target.url("/gone") }, retry: { maxRetry: 0 } });
  await api("POST", `/api/v1/jobs/${job}/instances/batch`, { items: Array.from({ length: count }, (_, number) => ({ key: `${job}:${number}` })) });
  await until(async () => (await dead(job)) === count);
}

const running = async (job: string): Promise<number> => (await api<{ items: unknown[] }>("GET", `/api/v1/instances?job=${job}&state=RUNNING`)).items.length;

async function wait(job: string, count: number): Promise<void> {
  await api("POST", `/api/v1/jobs/${job}/instances/batch`, { items: Array.from({ length: count }, () => ({})) });
}

/** Two queues with one slot, each held by a run that hangs: one of a job with a past, one of a job that has never succeeded. */
beforeAll(async () => {
  [target, base] = [await Target.start(), await control("alone")];
  for (const queue of [narrow, crowded]) await api("PUT", `/api/v1/queues/${queue}`, { maxConcurrency: 1 });
  target.hangs("/first");
  await create(first, { timeout: "10m", queue: crowded, target: { type: "http", url: target.url("/first") } });
  await wait(first, 1);
  await until(async () => (await running(first)) === 1);
  await wait(first, 2);
  await create(stuck, { timeout: "10m", queue: narrow });
  await api("POST", `/api/v1/jobs/${stuck}/instances/batch`, { items: Array.from({ length: 20 }, () => ({})) });
  await until(async () => (await api<{ items: unknown[] }>("GET", `/api/v1/instances?job=${stuck}&state=SUCCESS`)).items.length === 20);
  target.hangs("/ok");
  await api("POST", `/api/v1/jobs/${stuck}/trigger`, {}, fresh("key"));
  await until(async () => (await running(stuck)) === 1);
  target.says("/ok", 200);
  await wait(stuck, 3);
});
afterAll(() => target.stop());

test("1: a cron job for an HTTP target is created", async () => {
  const name = fresh("task");
  const clicks = await clicksOf(async (page) => {
    await page.locator("nav").getByRole("link", { name: "Jobs" }).click();
    await page.getByRole("link", { name: "New job" }).click();
    await page.getByLabel("Name", { exact: true }).fill(name);
    await page.getByLabel("Cron expression").fill("0 9 * * 1-5");
    await page.getByLabel("URL").fill(target.url("/ok"));
    await page.getByRole("button", { name: "Create job" }).click();
    await page.getByRole("heading", { level: 1, name }).waitFor();
  });
  expectClicks(clicks, 3);
});

test("2: the reason why a job did not run at nine is found", async () => {
  const name = fresh("nine");
  await create(name, { cron: "0 9 * * *", timezone: "UTC", startAt: "2999-01-01T00:00:00Z" });
  const clicks = await clicksOf(async (page) => {
    await goTo(page, name);
    await page.getByLabel("At", { exact: true }).fill("9:00");
    await page.getByRole("button", { name: "Explain", exact: true }).click();
    await page.getByText(/2999-01-01/).first().waitFor();
  });
  expectClicks(clicks, 1);
});

test("3: a failed instance is run again", async () => {
  const name = fresh("failed");
  await killed(name, 1);
  const clicks = await clicksOf(async (page) => {
    await goTo(page, name);
    await page.locator('a[href^="/instances/"]').first().click();
    await page.waitForURL(/\/instances\/\d+$/);
    await page.getByRole("button", { name: "Replay" }).first().click();
    await page.getByRole("dialog").getByRole("button", { name: "Replay" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });
  expectClicks(clicks, 3);
  expect((await api<{ items: { replayOf: string | null }[] }>("GET", `/api/v1/instances?job=${name}`)).items.some((one) => one.replayOf !== null)).toBe(true);
});

test("4: a queue is paused with a reason", async () => {
  const queue = fresh("reports");
  await create(fresh("of-queue"), { queue });
  const clicks = await clicksOf(async (page) => {
    await page.locator("nav").getByRole("link", { name: "Queues & nodes" }).click();
    await page.getByRole("row").filter({ hasText: queue }).getByRole("button", { name: "Pause" }).click();
    await page.getByRole("dialog").getByRole("textbox").fill("the warehouse moves");
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await page.getByRole("row").filter({ hasText: queue }).getByText("Paused").waitFor();
  });
  expectClicks(clicks, 3);
  expect(await api("GET", `/api/v1/queues/${queue}`)).toMatchObject({ paused: true, note: "the warehouse moves" });
});

test("5: all failures of the last hour are replayed at ten a second", async () => {
  const name = fresh("broken");
  await killed(name, 3);
  const clicks = await clicksOf(async (page) => {
    await page.keyboard.press("g");
    await page.keyboard.press("d");
    await page.getByRole("button", { name: "Any time" }).click();
    await page.getByText("Last hour", { exact: true }).click();
    await page.getByRole("button", { name: /^Replay matching/ }).click();
    await page.getByLabel("Rate").fill("10/s");
    await page.getByRole("dialog").getByRole("button", { name: "Replay", exact: true }).click();
    await page.getByText(/^\d+ of \d+$/).first().waitFor();
  });
  expectClicks(clicks, 4);
  await until(async () => (await api<{ items: { replayOf: string | null }[] }>("GET", `/api/v1/instances?job=${name}`)).items.filter((one) => one.replayOf !== null).length === 3);
});

test("6: a schedule is changed", async () => {
  const name = fresh("changed");
  await create(name, { cron: "0 9 * * *" });
  const clicks = await clicksOf(async (page) => {
    await goTo(page, name);
    await page.getByRole("link", { name: "Edit" }).or(page.getByRole("button", { name: "Edit" })).first().click();
    await page.getByLabel("Cron expression").fill("30 8 * * *");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Save these changes" }).click();
    await page.getByText("30 8 * * *").first().waitFor();
  });
  expectClicks(clicks, 3);
});

test("7: the load of the system is on the overview", async () => {
  const clicks = await clicksOf(async (page) => {
    await page.getByRole("img", { name: /^Trigger delay/ }).first().waitFor();
    await page.getByRole("img", { name: /^Attempts/ }).first().waitFor();
  });
  expect(clicks).toBe(0);
});

test("8: the log of one instance is read", async () => {
  const name = await control("worker");
  await until(async () => asked("GET", `/api/v1/jobs/${name}`).catch(() => null));
  await asked("POST", `/api/v1/jobs/${name}/trigger`, {}, fresh("key"));
  await until(async () => (await asked<{ items: unknown[] }>("GET", `/api/v1/instances?job=${name}&state=DEAD`)).items.length > 0);
  const clicks = await clicksOf(async (page) => {
    await goTo(page, name);
    await page.locator('a[href^="/instances/"]').first().click();
    await page.getByText("the ledger answers slowly").first().waitFor();
  }, BASE);
  expectClicks(clicks, 1);
});

test("9: the last week is backfilled", async () => {
  const name = fresh("weekly");
  await create(name, { cron: "0 9 * * *" });
  const clicks = await clicksOf(async (page) => {
    await goTo(page, name);
    await page.getByRole("button", { name: "Backfill" }).click();
    await page.getByRole("dialog").getByText("Last 7 days").click();
    await page.getByRole("dialog").getByRole("button", { name: "Count slots" }).click();
    await page.getByRole("dialog").getByRole("button", { name: /^Run \d+ slots$/ }).click();
    await page.getByRole("dialog").locator('[data-status="DONE"]').waitFor();
  });
  expectClicks(clicks, 4);
});

interface Standing {
  stuck: { job: string; waiting: number }[];
  full: { name: string; waiting: number; holders: { id: string }[] }[];
}

test("10: on a busy server, the stuck run and what it holds up are found from the overview with one click, and it is stopped", async () => {
  for (const _ of Array.from({ length: 8 })) await killed(fresh("dying"), 1);
  const found = await until(async () => {
    const seen = await api<Standing>("GET", "/api/v1/scheduler/attention");
    return seen.stuck.some((run) => run.job === stuck) && seen.full.some((queue) => queue.name === crowded) ? seen : null;
  }, 120_000);
  expect(found.stuck.find((run) => run.job === stuck)?.waiting).toBe(3);
  expect(found.full.find((queue) => queue.name === crowded)).toMatchObject({ waiting: 2 });

  const atTheHolder = await clicksOf(async (page) => {
    const line = page.getByRole("listitem").filter({ has: page.getByRole("link", { name: crowded, exact: true }) });
    await line.getByText("full: its only slot is in use, 2 waiting · held by").waitFor();
    await page.getByRole("button", { name: /^\d+ more$/ }).waitFor();
    await line.getByRole("link", { name: new RegExp(`^${first} \\d+$`) }).click();
    await page.waitForURL(/\/instances\/\d+/);
    await page.getByRole("heading", { level: 1, name: /^Instance/ }).waitFor();
  });
  expectClicks(atTheHolder, 1);

  let atTheRun = 0;
  const clicks = await clicksOf(async (page, soFar) => {
    const line = page.getByRole("listitem").filter({ has: page.getByRole("link", { name: stuck, exact: true }) });
    await line.getByText("3 instances wait behind it").waitFor();
    await line.getByRole("link", { name: /^instance \d/ }).click();
    await page.waitForURL(/\/instances\/\d+/);
    await page.getByRole("heading", { level: 1, name: /^Instance/ }).waitFor();
    atTheRun = await soFar();
    await page.getByRole("button", { name: /^Cancel/ }).first().click();
    await page.getByRole("dialog").getByRole("button", { name: /^Cancel/ }).last().click();
    await page.getByText("Cancelled", { exact: true }).first().waitFor();
  });
  expect(atTheRun).toBe(1);
  expectClicks(clicks, 3);
});
