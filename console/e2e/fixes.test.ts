import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { visiting } from "./browser";
import { api, fresh, until } from "./server";
import { Target } from "./target";

interface Queue {
  paused: boolean;
  maxConcurrency: number | null;
}

const [narrow, hanging] = [fresh("narrow"), fresh("hanging")];
let target: Target;

const queueOf = (name: string): Promise<Queue> => api<Queue>("GET", `/api/v1/queues/${name}`);
const countOf = async (job: string, state: string): Promise<number> => (await api<{ items: unknown[] }>("GET", `/api/v1/instances?job=${job}&state=${state}`)).items.length;
const trigger = (job: string) => api("POST", `/api/v1/jobs/${job}/trigger`, {}, fresh("key"));

async function create(name: string, path: string, more: object = {}): Promise<void> {
  await api("POST", "/api/v1/jobs", { name, target: { type: "http", url: target.url(path) }, retry: { maxRetry: 0 }, ...more }, fresh("once"));
}

/** The line of the overview that is about it, when the server has told of it. */
async function lineOf(page: Page, name: string, act: string) {
  const more = page.getByRole("button", { name: /^\d+ more$/ });
  if (await more.isVisible()) await more.click();
  return page.getByRole("listitem").filter({ has: page.getByRole("button", { name: `${act}: ${name}` }) });
}

/** Presses the button of a line, and the one of its dialog; then the line goes. */
async function fix(page: Page, name: string, act: string, confirm: string): Promise<void> {
  const line = await lineOf(page, name, act);
  await line.getByRole("button").click();
  await page.getByRole("dialog").getByRole("button", { name: confirm, exact: true }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await line.waitFor({ state: "detached" });
}

async function told(kind: string, name: string): Promise<void> {
  await until(async () => JSON.stringify((await api<Record<string, unknown>>("GET", "/api/v1/scheduler/attention"))[kind]).includes(`"${name}"`), 150_000);
}

beforeAll(async () => {
  target = await Target.start();
  await api("PUT", `/api/v1/queues/${narrow}`, { maxConcurrency: 1 });
  await create(hanging, "/usual", { queue: narrow, timeout: "10m" });
  await api("POST", `/api/v1/jobs/${hanging}/instances/batch`, { items: Array.from({ length: 20 }, () => ({})) });
  await until(async () => (await countOf(hanging, "SUCCESS")) === 20);
  target.hangs("/usual");
  await trigger(hanging);
  await until(async () => (await countOf(hanging, "RUNNING")) === 1);
  target.says("/usual", 200);
  await trigger(hanging);
});
afterAll(async () => {
  await api("PUT", `/api/v1/queues/${narrow}`, { maxConcurrency: 1 });
  await target.stop();
});

test("a paused queue and a paused job are told with what they hold up, and resumed from the overview", async () => {
  const [queue, waiting, paused] = [fresh("queue"), fresh("waiting"), fresh("paused")];
  await api("PUT", `/api/v1/queues/${queue}`, { paused: true });
  await create(waiting, "/usual", { queue });
  await trigger(waiting);
  await create(paused, "/usual");
  await api("POST", `/api/v1/jobs/${paused}/pause`, { note: "moving house" });
  await trigger(paused);
  await told("pausedQueues", queue);
  await told("pausedJobs", paused);
  await visiting({}, async (visit) => {
    const page = await visit.open("/");
    await (await lineOf(page, queue, "Resume")).getByText("queue paused · 1 instance waiting").waitFor();
    await (await lineOf(page, paused, "Resume")).getByText("moving house · 1 instance waiting").waitFor();
    await (await lineOf(page, queue, "Resume")).getByRole("button").click();
    await page.getByRole("dialog").getByText("Waiting instances start").waitFor();
    await visit.expectAccessible("[role=dialog]");
    await visit.shoot("fix-queue");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect((await queueOf(queue)).paused).toBe(true);

    await fix(page, queue, "Resume", "Resume");
    await fix(page, paused, "Resume", "Resume");
  });
  expect((await queueOf(queue)).paused).toBe(false);
  await until(async () => (await countOf(waiting, "SUCCESS")) === 1 && (await countOf(paused, "SUCCESS")) === 1);
});

test("dead letters are replayed, and a blocked run goes on from its failed node, from the overview", async () => {
  const [dying, flow, load, report] = [fresh("dying"), fresh("flow"), fresh("load"), fresh("report")];
  target.says("/gone", 410);
  await create(dying, "/gone");
  await trigger(dying);
  await create(load, "/gone");
  await create(report, "/usual");
  await api("POST", "/api/v1/workflows", { name: flow, nodes: [{ name: "load", job: load }, { name: "report", job: report, after: ["load"] }] });
  await api("POST", `/api/v1/workflows/${flow}/trigger`, {}, fresh("key"));
  await told("dying", dying);
  await told("blocked", flow);
  target.says("/gone", 200);
  await visiting({}, async (visit) => {
    const page = await visit.open("/");
    await fix(page, `${flow} / load`, "Rerun", "Rerun from here");
    await (await lineOf(page, dying, "Replay")).getByRole("button").click();
    await page.getByRole("dialog").getByText(/^1 /).first().waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Replay", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Close", exact: true }).last().click();
    await page.getByRole("listitem").filter({ has: page.getByRole("link", { name: dying, exact: true }) }).waitFor({ state: "detached" });
  });
  await until(async () => (await countOf(dying, "SUCCESS")) === 1 && (await countOf(report, "SUCCESS")) === 1);
});

test("a clogged queue gets a higher limit, and the stuck run that clogs it is cancelled, from the overview", async () => {
  await told("clogged", narrow);
  await visiting({ width: 390, height: 844 }, async (visit) => {
    const page = await visit.open("/");
    const [{ id }] = (await api<{ items: [{ id: string }] }>("GET", `/api/v1/instances?job=${hanging}&state=RUNNING`)).items;
    const line = await lineOf(page, narrow, "Raise limit");
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await line.getByRole("button").click();
    const dialog = page.getByRole("dialog");
    expect(await dialog.getByLabel("Max concurrent").inputValue()).toBe("2");
    await visit.expectAccessible("[role=dialog]");
    await visit.shoot("fix-limit");
    await dialog.getByRole("button", { name: "Raise limit" }).click();
    await line.waitFor({ state: "detached" });
    expect((await queueOf(narrow)).maxConcurrency).toBe(2);
    await until(async () => (await countOf(hanging, "SUCCESS")) === 21);

    await fix(page, `${hanging} ${id}`, "Cancel run", "Cancel instance");
    expect(await countOf(hanging, "CANCELLED")).toBe(1);
  });
});
