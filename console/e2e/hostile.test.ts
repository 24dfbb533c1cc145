import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { visiting } from "./browser";
import { api, fresh, until } from "./server";
import { Target } from "./target";

/** What does harm where it is taken for anything but a text: each would set `__pwned`, or turn or burst the page. */
const SCRIPT = `"'><script>window.__pwned=1</script><img src=x onerror="window.__pwned=2"><svg onload=window.__pwned=3>`;
const LINK = "javascript:window.__pwned=4";
const TURNED = "\u202Egnp.exe\u2066\u200F";
const BLANK = "\u0001\u007F\u200B\uFEFF";
const HOSTILE = `${SCRIPT}${TURNED}${BLANK}👩‍👩‍👧‍👦{{count}}$t(title)`;
const LONG = "W".repeat(10_000);
const TAG = `<img/src=x/onerror=window.__pwned=5>`;

let target: Target;
const word = fresh("hostile");
const [job, sick, stock, flow, watcher] = ["a", "b", "c", "d", "e"].map((letter) => `${word}-${letter}`) as [string, string, string, string, string];
const queue = `${word}-q`;
let instance: string;
let dead: { id: string; instanceId: string };
let run: string;

interface List<Item> {
  items: Item[];
}

/** Seeds every text that somebody else than the operator may write, as far as the API takes it. */
beforeAll(async () => {
  target = await Target.start();
  target.says("/sick", 410, { message: `${HOSTILE} ${LONG}`, tags: [TAG] });
  target.says("/well", 200, { [HOSTILE]: HOSTILE, long: LONG, link: LINK });
  target.says("/source", 200, { items: [{ key: HOSTILE, executeTime: "2999-01-01T00:00:00Z" }, { key: LINK, executeTime: HOSTILE }], nextCursor: null });
  await api("POST", "/api/v1/jobs", { name: job, target: { type: "http", url: target.url("/well"), headers: { "x-note": LINK } }, tags: [TAG], queue, payload: { [HOSTILE]: HOSTILE, LONG } }, fresh("once"));
  await api("POST", "/api/v1/jobs", { name: sick, target: { type: "http", url: target.url("/sick") }, tags: [TAG], retry: { maxRetry: 0 } }, fresh("once"));
  await api("POST", "/api/v1/jobs", { name: stock, target: { type: "http", url: target.url("/sick") }, every: "1d", refresh: { window: "10d" }, retry: { maxRetry: 0 } }, fresh("once"));
  await api("POST", `/api/v1/jobs/${stock}/entities/batch`, { items: [{ key: HOSTILE, payload: HOSTILE }, { key: LINK }, { key: LONG.slice(0, 500) }] });
  await api("POST", `/api/v1/jobs/${stock}/trigger`, {}, fresh("once"));
  const put = async (of: string, key: string): Promise<string> =>
    (await api<{ instance: { id: string } }>("PUT", `/api/v1/jobs/${of}/instances/${encodeURIComponent(key)}`, { payload: { [HOSTILE]: LONG, link: LINK } })).instance.id;
  instance = await put(job, HOSTILE);
  for (const key of [HOSTILE, LINK, LONG.slice(0, 500)]) await put(sick, key);
  await api("POST", "/api/v1/workflows", { name: flow, nodes: [{ name: "first", job }, { name: "n".repeat(60), job: sick, after: ["first"], payload: HOSTILE }], tags: [TAG], payload: HOSTILE }, fresh("once"));
  const begun = await api<{ instance: { id: string } }>("POST", `/api/v1/workflows/${flow}/trigger`, { payload: HOSTILE }, fresh("once"));
  run = begun.instance.id;
  await api("POST", "/api/v1/reconcilers", { name: watcher, job, source: { type: "http", url: target.url("/source"), headers: { "x-note": LINK } } }, fresh("once"));
  await api("POST", `/api/v1/reconcilers/${watcher}/run`, undefined, fresh("once"));
  await api("POST", `/api/v1/jobs/${stock}/pause`, { note: HOSTILE });
  await until(async () => (await api<List<unknown>>("GET", `/api/v1/dlq?job=${sick}`)).items.length >= 3);
  await until(async () => (await api<List<{ finishedAt: string | null; error: string | null }>>("GET", `/api/v1/reconcilers/${watcher}/reports`)).items.some((report) => report.finishedAt ?? report.error));
  await until(async () => (await api<{ state: string }>("GET", `/api/v1/instances/${instance}`)).state === "SUCCESS");
  const letters = await api<List<{ id: string; instanceId: string; key: string | null }>>("GET", `/api/v1/dlq?job=${sick}`);
  const [first, other] = letters.items.filter((letter) => letter.key !== null);
  dead = first!;
  await api("POST", `/api/v1/dlq/${other!.id}/discard`, { reason: HOSTILE });
});
afterAll(async () => target.stop());

/** Every page that shows any of it; also as what somebody was sent in an address. */
const pages = (): string[] => [
  "/",
  `/jobs?tag=${encodeURIComponent(TAG)}`,
  `/jobs/${job}`,
  `/jobs/${job}/edit`,
  `/jobs/${stock}`,
  `/instances?job=${sick}&when=all`,
  `/instances?key=${encodeURIComponent(SCRIPT)}&payload=${encodeURIComponent(`${SCRIPT}=${LINK}`)}`,
  `/instances/${instance}`,
  `/instances/${dead.instanceId}`,
  `/dead-letters?job=${sick}&status=all`,
  `/dead-letters/${dead.id}`,
  "/workflows",
  `/workflows/${flow}`,
  `/workflows/${flow}/edit`,
  `/workflows/${flow}/runs/${run}`,
  "/queues",
  "/refresh",
  `/refresh/${stock}`,
  "/reconcilers",
  `/reconcilers/${watcher}`,
  `/reconcilers/${watcher}/edit`,
  "/forecast",
  "/governor",
];

async function expectUnharmed(page: Page, path: string): Promise<void> {
  const found = await page.evaluate(() => ({
    pwned: (globalThis as { __pwned?: unknown }).__pwned,
    links: [...document.querySelectorAll("[href], [src]")].filter((each) => /^\s*javascript:/i.test(each.getAttribute("href") ?? each.getAttribute("src") ?? "")).length,
    strays: document.querySelectorAll("body script:not([src]), img[src=x], svg[onload], [onerror]").length,
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  }));
  expect(found, path).toEqual({ pwned: undefined, links: 0, strays: 0, overflow: 0 });
}

test("hostile texts in every field run no script, lead nowhere, and burst no page", async () => {
  await visiting({ isAlone: true }, async (visit) => {
    let shown = 0;
    for (const path of pages()) {
      const page = await (path.includes("%") ? visit.load(path) : visit.open(path));
      await expectUnharmed(page, path);
      shown += Number((await page.locator("main").innerText()).includes("__pwned"));
    }
    // They are there to be read, so that this does not pass because nothing is shown.
    expect(shown).toBeGreaterThanOrEqual(8);
  });
});

test("hostile texts are shown where somebody looks closer: in dialogs, in drawers, in the search", async () => {
  await visiting({ isAlone: true }, async (visit) => {
    const page = await visit.open(`/reconcilers/${watcher}`);
    await page.getByRole("row").nth(1).getByRole("button").click();
    await page.getByRole("dialog").waitFor();
    await expectUnharmed(page, "the report");
    await visit.load(`/dead-letters?tag=${encodeURIComponent(TAG)}`);
    await page.getByRole("button", { name: "Replay matching" }).click();
    await page.getByRole("dialog").getByText(TAG).waitFor();
    await expectUnharmed(page, "the replay");
    await page.keyboard.press("Escape");
    await visit.open(`/instances/${dead.instanceId}`);
    await page.getByText("All runs of this key").click();
    await expectUnharmed(page, "the chain");
    await page.keyboard.press("Control+k");
    await page.keyboard.type(word);
    await page.getByText(sick).first().waitFor();
    await expectUnharmed(page, "the search");
  });
});
