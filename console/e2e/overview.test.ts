import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { BASE, visiting } from "./browser";
import { inAllLooks, type Showing } from "./looks";
import { api, fresh, until } from "./server";

const held = fresh("held");
const dying = fresh("dying");
const HOSTILE = `<img src=x onerror="globalThis.owned=1"> \u202E`;

const search: Showing = async (page, say) => {
  await page.keyboard.press("Control+k");
  await page.getByRole("textbox", { name: say("common:search.placeholder") }).fill(dying);
  await page.getByRole("dialog").getByRole("button", { name: dying }).first().waitFor();
};

const noticesIn = (tab: Page) => tab.getByRole("note").filter({ hasText: "No key has been created" });

beforeAll(async () => {
  const target = { type: "http", url: `${BASE}/api/v1/no-such-page`, method: "GET" };
  await api("POST", "/api/v1/jobs", { name: held, target });
  await api("POST", `/api/v1/jobs/${held}/pause`, { note: HOSTILE });
  await api("POST", "/api/v1/jobs", { name: dying, target });
  await api("POST", `/api/v1/jobs/${dying}/trigger`, {}, fresh("key"));
  await until(async () => {
    const letters = await api<{ items: unknown[] }>("GET", `/api/v1/dlq?job=${dying}`);
    return letters.items.length > 0;
  });
});

test("the overview is right in both languages and both schemes, and so is the search over it", async () => {
  const titles = /^(Health|Needs attention|Nodes and shards|调度健康状况|需要你处理|节点与分片)$/;
  await inAllLooks([
    { path: "/", shows: (page) => page.getByRole("heading", { level: 2, name: titles }).nth(2).waitFor(), dialogs: [search] },
  ]);
});

test("what needs somebody is named with its reason, and leads there", async () => {
  await visiting({}, async (visit) => {
    const page = await visit.open("/");
    const more = page.getByRole("button", { name: /^\d+ more$/ });
    if (await more.isVisible()) await more.click();
    await page.getByText(HOSTILE.trim()).first().waitFor();
    expect(await page.evaluate(() => "owned" in globalThis)).toBe(false);
    await page.getByRole("listitem").filter({ hasText: dying }).getByText(/1 dead letter in the last hour/).waitFor();
    await page.getByRole("link", { name: dying }).click();
    await page.getByRole("heading", { level: 1, name: dying }).waitFor();
  });
});

test("a blocked workflow run is named with its root cause and leads to the run, which names it as well", async () => {
  const [flow, after] = [fresh("flow"), fresh("after")];
  const target = { type: "http", url: `${BASE}/healthz`, method: "GET" };
  await api("POST", "/api/v1/jobs", { name: after, target });
  const nodes = [{ name: "load", job: dying }, { name: "report", job: after, after: ["load"] }, { name: "mail", job: after, after: ["report"] }];
  await api("POST", "/api/v1/workflows", { name: flow, nodes });
  await api("POST", `/api/v1/workflows/${flow}/trigger`, {}, fresh("key"));
  await until(async () => {
    const { blocked } = await api<{ blocked: { workflow: string }[] }>("GET", "/api/v1/scheduler/attention");
    return blocked.some((run) => run.workflow === flow);
  });
  await visiting({}, async (visit) => {
    const page = await visit.open("/");
    const more = page.getByRole("button", { name: /^\d+ more$/ });
    if (await more.isVisible()) await more.click();
    const line = page.getByRole("listitem").filter({ hasText: flow });
    await line.getByText("load failed, blocking 2 nodes").waitFor();
    await line.getByRole("link", { name: flow }).click();
    await page.getByText("failed, blocking 2 nodes.").waitFor();

    const { items } = await api<{ items: { id: string; job: string }[] }>("GET", `/api/v1/instances?job=${after}`);
    const { items: dead } = await api<{ items: { id: string }[] }>("GET", `/api/v1/instances?job=${dying}`);
    await visit.open(`/instances/${items[0]!.id}`);
    await page.getByRole("link", { name: `Open instance ${dead[0]!.id}`, exact: true }).click();
    await page.waitForURL(`**/instances/${dead[0]!.id}`);
  });
});

test("how the last hour went is drawn, and the same minute is told by all charts", async () => {
  await visiting({}, async (visit) => {
    const page = await visit.open("/");
    const charts = page.getByRole("img", { name: /^(Trigger delay|Attempts|Success|Retry backlog|Dead letters|Events)/ });
    await until(async () => (await charts.count()) === 6);
    await charts.first().scrollIntoViewIfNeeded();
    await charts.first().locator(".u-over").hover();
    const told = page.getByText(/^\d\d-\d\d \d\d:\d\d$/);
    await until(async () => (await told.count()) === 6);
    expect(new Set(await told.allTextContents()).size).toBe(1);
  });
});

test("a notice that was read stays away, in the other tabs of the browser as well", async () => {
  await visiting({ isAlone: true }, async (visit) => {
    const page = await visit.open("/");
    const other = await page.context().newPage();
    await other.goto("/jobs");
    await noticesIn(other).waitFor();
    await noticesIn(page).getByRole("button").click();
    await noticesIn(page).waitFor({ state: "detached" });
    await noticesIn(other).waitFor({ state: "detached" });

    const later = await page.context().newPage();
    const told = later.waitForResponse("**/api/v1/scheduler/health");
    await later.goto("/jobs");
    expect(await (await told).text()).toContain("No key has been created");
    await later.getByRole("heading", { level: 1, name: "Jobs" }).waitFor();
    expect(await noticesIn(later).count()).toBe(0);
  });
});

test("the counter of scheduled instances tells those that are not due yet from those that are overdue", async () => {
  const name = fresh("held-up");
  await api("PUT", `/api/v1/queues/${name}`, { paused: true });
  await api("POST", "/api/v1/jobs", { name, queue: name, target: { type: "http", url: `${BASE}/healthz`, method: "GET" } });
  const executeTimes = ["2026-01-01T00:00:00Z", "2999-01-01T00:00:00Z", "2999-01-02T00:00:00Z", "2999-01-03T00:00:00Z"];
  await api("POST", `/api/v1/jobs/${name}/instances/batch`, { items: executeTimes.map((executeTime) => ({ executeTime })) });
  await visiting({}, async (visit) => {
    const page = visit.page;
    const counter = page.getByRole("link", { name: /^Scheduled/ });
    await until(async () => {
      const told = page.waitForResponse("**/api/v1/scheduler/stats**");
      await visit.load("/");
      const { live, overdue } = (await (await told).json()) as { live: { INIT: number }; overdue: number };
      const number = new Intl.NumberFormat("en");
      const isTold = (await counter.textContent())?.includes(`${number.format(live.INIT - overdue)} not due yet, ${number.format(overdue)} overdue`);
      return overdue >= 1 && live.INIT - overdue >= 3 && isTold; // others come and go meanwhile
    });
  });
});

test("a number is a link to its list", async () => {
  await visiting({}, async (visit) => {
    const page = await visit.open("/");
    await page.getByRole("link", { name: /^Running/ }).click();
    await page.getByRole("heading", { level: 1, name: "Instances" }).waitFor();
    expect(new URL(page.url()).searchParams.get("state")).toBe("RUNNING");
  });
});
