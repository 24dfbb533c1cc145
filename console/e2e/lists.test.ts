import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { visiting } from "./browser";
import { inAllLooks, type Showing } from "./looks";
import { api, fresh, until } from "./server";

const job = fresh("listed");
const QUEUE = fresh("lane");

/** Ten days of forty instances each; the browser is in Shanghai. */
beforeAll(async () => {
  await api("POST", "/api/v1/jobs", { name: job, queue: QUEUE, target: { type: "http", url: "http://127.0.0.1:9/hook" } }, fresh("once"));
  const items = Array.from({ length: 400 }, (_, number) => ({
    key: `k${number}`,
    executeTime: `2999-01-${String(1 + Math.floor(number / 40)).padStart(2, "0")}T00:00:00Z`,
  }));
  await api("POST", `/api/v1/jobs/${job}/instances/batch`, { items });
});

const search = (page: Page): URLSearchParams => new URL(page.url()).searchParams;
const heads = (page: Page): Promise<string[]> => page.getByRole("columnheader").allInnerTexts();

const opens = (key: string): Showing => async (page, say) => {
  await page.getByRole("button", { name: say(key), exact: true }).click();
  await page.getByRole("dialog").waitFor();
};

test("the tools of a list are right in both languages and schemes", async () => {
  await inAllLooks([
    {
      path: `/instances?job=${job}&at=2999-01-05T00:00:00Z`,
      shows: (page) => page.getByText(/100.*400/).waitFor(),
      dialogs: [opens("common:list.columns"), opens("common:list.views"), opens("common:list.jump")],
    },
  ]);
});

test("a list says how many match, begins at a time, and shows all again", async () => {
  await visiting({}, async (visit) => {
    const page = await visit.open(`/instances?job=${job}`);
    await page.getByText("100 of 400 loaded").waitFor();
    await page.getByRole("button", { name: "Jump to time" }).click();
    await page.getByLabel("Start the list at").fill("2999-01-05 12:00");
    await page.getByRole("button", { name: "Jump", exact: true }).click();
    await page.getByRole("row").nth(1).getByText("2999-01-05 08:00:00").waitFor();
    expect(search(page).get("at")).toBe("2999-01-05T04:00:00.000Z");

    await page.getByRole("columnheader").getByRole("button", { name: "Fire time" }).click();
    await page.getByRole("row").nth(1).getByText("2999-01-06 08:00:00").waitFor();
    await visit.load(`/instances?${search(page).toString()}`);
    await page.getByRole("row").nth(1).getByText("2999-01-06 08:00:00").waitFor();

    await page.getByRole("button", { name: /^Starts at 2999-01-05 12:00: show all/ }).click();
    await page.getByRole("row").nth(1).getByText("2999-01-01 08:00:00").waitFor();
    expect(search(page).get("at")).toBe(null);
  });
});

test("columns are chosen, stand in the address, and are as they were at the next visit of the list", async () => {
  await visiting({ isAlone: true }, async (visit) => {
    const page = await visit.open(`/instances?job=${job}`);
    expect(await heads(page)).not.toContain("Queue");
    await page.getByRole("button", { name: "Columns" }).click();
    await page.getByRole("checkbox", { name: "Queue" }).check();
    await page.getByRole("checkbox", { name: "Attempts" }).uncheck();
    await page.keyboard.press("Escape");
    await page.getByRole("row").nth(1).getByText(QUEUE).waitFor();
    expect(search(page).get("columns")).toBe("state,job,key,fire,delay,duration,error,queue");

    await visit.open("/jobs");
    await visit.open(`/instances?job=${job}`);
    expect(await heads(page)).toContain("Queue");
    expect(await heads(page)).not.toContain("Attempts");
    await visit.open(`/instances?job=${job}&columns=state,node`);
    expect((await heads(page)).filter(Boolean)).toEqual(["State", "Node"]);

    await page.getByRole("button", { name: "Columns" }).click();
    await page.getByRole("button", { name: "Reset columns" }).click();
    await page.keyboard.press("Escape");
    expect(await heads(page)).toContain("Attempts");
    expect(search(page).get("columns")).toBe(null);
  });
});

test("a view is saved under a name, opened again with its filters, and deleted", async () => {
  await visiting({ isAlone: true }, async (visit) => {
    const page = await visit.open(`/instances?job=${job}&state=INIT&order=oldest`);
    await page.getByRole("button", { name: "Views" }).click();
    await page.getByText("Views are kept in this browser only").waitFor();
    await page.getByLabel("Name of this view").fill("next of mine");
    await page.getByRole("button", { name: "Save view" }).click();
    await page.getByRole("link", { name: "next of mine" }).waitFor();

    await visit.load("/instances");
    await page.getByRole("button", { name: "Views" }).click();
    await page.getByRole("link", { name: "next of mine" }).click();
    await page.getByRole("row").nth(1).getByText("2999-01-01 08:00:00").waitFor();
    expect(Object.fromEntries(search(page))).toEqual({ job, state: "INIT", order: "oldest" });

    await page.getByRole("button", { name: "Views" }).click();
    await page.getByRole("button", { name: "Delete view next of mine" }).click();
    await page.getByText("No saved views yet.").waitFor();
  });
});

test("the tools of a list fit on a phone, which shows the columns that were chosen there", async () => {
  await visiting({ width: 390, height: 844, isAlone: true }, async (visit) => {
    const page = await visit.open(`/instances?job=${job}&at=2999-01-05T00:00:00Z`);
    await page.getByRole("row").nth(1).waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    expect(await heads(page)).not.toContain("Delay");
    await page.getByRole("button", { name: "Columns" }).click();
    await page.getByRole("checkbox", { name: "Queue" }).check();
    await visit.shoot("phone-columns");
    await page.keyboard.press("Escape");
    await until(async () => (await heads(page)).includes("Queue"));
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  });
});

test("jobs are sorted by name on the server, and the order is in the address", async () => {
  const tag = fresh("tag");
  const names = ["b", "c", "a"].map((letter) => `${letter}-${tag}`);
  for (const name of names) await api("POST", "/api/v1/jobs", { name, tags: [tag] }, fresh("once"));
  const listed = (page: Page): Promise<string[]> => page.getByRole("gridcell").getByRole("link", { name: tag }).allInnerTexts();
  await visiting({}, async (visit) => {
    const page = await visit.open(`/jobs?tag=${tag}`);
    await page.getByText("3 in all").waitFor();
    expect(await listed(page)).toEqual(names);
    const head = page.getByRole("columnheader").getByRole("button", { name: "Job" });
    await head.click();
    await until(async () => (await listed(page)).join() === names.toSorted().join());
    await head.click();
    await until(async () => (await listed(page)).join() === names.toSorted().toReversed().join());
    expect(search(page).get("order")).toBe("nameReversed");
  });
});

const keys = (page: Page): Promise<string[]> => page.getByRole("gridcell").getByRole("link", { name: /^(first|second)$/ }).allInnerTexts();

test("dead letters are read from the oldest on, from a time, and with other columns", async () => {
  const dying = fresh("dying");
  await api("POST", "/api/v1/jobs", { name: dying, target: { type: "http", url: "http://127.0.0.1:9/hook" }, retry: { maxRetry: 0 } }, fresh("once"));
  for (const key of ["first", "second"]) {
    await api("PUT", `/api/v1/jobs/${dying}/instances/${key}`, {});
    await until(async () => (await api<{ items: { key: string }[] }>("GET", `/api/v1/dlq?job=${dying}`)).items.some((letter) => letter.key === key));
  }
  const { items } = await api<{ items: { createdAt: string }[] }>("GET", `/api/v1/dlq?job=${dying}`);
  await visiting({}, async (visit) => {
    const page = await visit.open(`/dead-letters?job=${dying}`);
    await page.getByText("2 in all").waitFor();
    expect(await keys(page)).toEqual(["second", "first"]);
    await page.getByRole("columnheader").getByRole("button", { name: "Dead since" }).click();
    await until(async () => (await keys(page)).join() === "first,second");
    expect(search(page).get("order")).toBe("oldest");

    await visit.open(`/dead-letters?job=${dying}&order=oldest&columns=key,instance&at=${encodeURIComponent(items[0]!.createdAt)}`);
    await page.getByText("1 of 2 loaded").waitFor();
    expect(await keys(page)).toEqual(["second"]);
    expect(await heads(page)).toEqual(["", "Key", "Instance"]);
  });
});

test("jobs, entities and runs say how many match; runs are narrowed by time and sorted by the server", async () => {
  const target = { type: "http", url: "http://127.0.0.1:9/hook" };
  const many = fresh("many");
  await Promise.all(Array.from({ length: 53 }, (_, number) => api("POST", "/api/v1/jobs", { name: `${many}-${number}`, target, retry: { maxRetry: 0 } }, fresh("once"))));
  const stock = fresh("counted");
  await api("POST", "/api/v1/jobs", { name: stock, every: "1d", refresh: { window: "10d" }, target }, fresh("once"));
  await api("POST", `/api/v1/jobs/${stock}/entities/batch`, { items: Array.from({ length: 120 }, (_, number) => ({ key: `${number % 10}-${number}` })) });
  const flow = fresh("flow");
  await api("POST", "/api/v1/workflows", { name: flow, nodes: [{ name: "only", job: `${many}-0` }] }, fresh("once"));
  const runs: string[] = [];
  for (let number = 0; number < 3; number += 1) runs.push((await api<{ run: { id: string } }>("POST", `/api/v1/workflows/${flow}/trigger`, {}, fresh("once"))).run.id);
  await until(async () => (await api<{ count: number }>("GET", `/api/v1/workflows/${flow}/runs/count?state=BLOCKED`)).count === 3);
  const times = (await api<{ items: { fireTime: string }[] }>("GET", `/api/v1/workflows/${flow}/runs?order=oldest`)).items.map((run) => run.fireTime);

  await visiting({}, async (visit) => {
    const page = await visit.open(`/jobs?name=${many}`);
    await page.getByText("50 of 53 loaded").waitFor();
    await visit.open(`/refresh/${stock}`);
    await page.getByText("100 of 120 loaded").waitFor();

    const list = page.getByRole("grid", { name: "Runs", exact: true });
    const first = () => list.getByRole("row").nth(1).getByRole("link").first().innerText();
    await visit.open(`/workflows/${flow}`);
    await list.getByRole("link", { name: runs[2]!, exact: true }).waitFor();
    expect(await first()).toBe(runs[2]);
    await list.getByRole("columnheader").getByRole("button", { name: "Fire time" }).click();
    await until(async () => (await first()) === runs[0]);
    expect(search(page).get("order")).toBe("oldest");
    await visit.open(`/workflows/${flow}?order=oldest&at=${encodeURIComponent(times[1]!)}`);
    await page.getByText("2 of 3 loaded").waitFor();
    await visit.open(`/workflows/${flow}?to=${encodeURIComponent(times[1]!)}`);
    await page.getByText("1 in all").waitFor();
    await page.getByRole("button", { name: /^Fire time: / }).waitFor();
  });
});
