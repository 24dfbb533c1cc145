import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { BASE, visiting } from "./browser";
import { inAllLooks, pressing, type Showing } from "./looks";
import { api, fresh, until } from "./server";

const TARGET = { type: "http", url: `${BASE}/healthz`, method: "GET" };
const HOSTILE = `<img src=x onerror="globalThis.owned=1">`;
const wellKnown = fresh("known");

interface JobSeen {
  status: string;
  note: string | null;
  payload: unknown;
  overlap: string;
  cron: string;
}

async function jobNamed(name: string): Promise<JobSeen> {
  return api<JobSeen>("GET", `/api/v1/jobs/${name}`);
}

async function create(name: string, fields: object): Promise<void> {
  await api("POST", "/api/v1/jobs", { name, target: TARGET, ...fields });
}

/** The dialog on top, by its title. */
function dialog(page: Page, title: string | RegExp) {
  return page.getByRole("dialog", { name: title });
}

/** Fills the fields of a target: this server. */
async function fillTarget(page: Page): Promise<void> {
  await page.getByRole("combobox", { name: "Method" }).or(page.getByLabel("Method")).first().click();
  await page.getByRole("option", { name: "GET" }).click();
  await page.getByLabel("URL").fill(`${BASE}/healthz`);
}

/** The wizard at its second step. */
const counted: Showing = async (page, say) => {
  await page.getByRole("dialog").getByText(say("jobs:backfill.range.hour")).click();
  await page.getByRole("dialog").getByRole("button", { name: say("jobs:backfill.count") }).click();
  await page.getByText(say("jobs:backfill.slots")).waitFor();
};

beforeAll(async () => {
  await create(wellKnown, { cron: "*/5 * * * *", timezone: "Europe/Berlin", tags: ["e2e"], payload: { shop: 1 } });
});

test("every page of jobs is right in both languages and both schemes, and so are its dialogs", async () => {
  await inAllLooks([
    { path: "/jobs" },
    {
      path: `/jobs/${wellKnown}`,
      dialogs: [
        pressing("jobs:act.trigger"),
        pressing("jobs:act.pause"),
        pressing("jobs:act.backfill"),
        pressing("jobs:act.backfill", counted),
      ],
    },
    { path: "/jobs/new" },
    { path: `/jobs/${wellKnown}/edit` },
  ]);
});

test("C1o a job is created from the form, its fires are shown while typing, and it fires", async () => {
  const name = fresh("made");
  await visiting({}, async (visit) => {
    const page = await visit.open("/jobs/new");
    await page.getByLabel("Name", { exact: true }).fill(name);
    await page.getByLabel("Cron expression").fill("0 9 * * 1-5");
    await page.getByText("At 09:00, Monday through Friday").waitFor();
    await page.getByRole("list", { name: "Next fires" }).getByRole("listitem").nth(5).waitFor();
    await page.getByText("Interval", { exact: true }).click();
    await page.getByLabel("Every").fill("1s");
    await fillTarget(page);
    await page.getByRole("button", { name: "Create job" }).click();

    await page.getByRole("heading", { level: 1, name }).waitFor();
    await page.locator('[data-state="SUCCESS"]').first().waitFor();
  });
});

test("a job has a title, a description and an owner in any script, and is found by them", async () => {
  const [name, owner] = [fresh("labelled"), fresh("市场部")];
  const title = `发放优惠券 ${HOSTILE} ${name}`;
  await visiting({}, async (visit) => {
    const page = await visit.open("/jobs/new");
    await page.getByLabel("Name", { exact: true }).fill(name);
    await page.getByLabel("Title", { exact: true }).fill(title);
    await page.getByText("Manual", { exact: true }).click();
    await fillTarget(page);
    await page.getByRole("button", { name: /^More: owner/ }).click();
    await page.getByLabel("Owner", { exact: true }).fill(owner);
    await page.getByLabel("Description", { exact: true }).fill("每五分钟一次。\n失败时联系市场部。");
    await page.getByRole("button", { name: "Create job" }).click();

    await page.getByRole("heading", { level: 1, name }).waitFor();
    await page.getByText(title).waitFor();
    await page.getByText("失败时联系市场部。").waitFor();
    await page.getByRole("link", { name: owner }).click();
    await page.getByText("1 in all").waitFor();
    expect(new URL(page.url()).searchParams.get("owner")).toBe(owner);
    await page.getByText(title).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByPlaceholder(/Search/).fill(title.slice(0, 40));
    await page.getByRole("dialog").getByText(name, { exact: true }).waitFor();
  });
});

/** Fills the form of a new job that calls this server, once. */
async function fillOnce(page: Page, name: string, kind: string, field: string, value: string): Promise<void> {
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByText(kind, { exact: true }).click();
  await page.getByLabel(field, { exact: true }).fill(value);
  await fillTarget(page);
}

interface RunSeen {
  state: string;
  executeTime: string;
  startedAt: string;
}

/** Creates the job; returns its only instance when the page shows its success. */
async function ranOnce(page: Page, name: string): Promise<RunSeen> {
  await page.getByRole("button", { name: "Create job" }).click();
  await page.getByRole("heading", { level: 1, name }).waitFor();
  await page.locator('[data-state="SUCCESS"]').first().waitFor();
  const { items } = await api<{ items: RunSeen[] }>("GET", `/api/v1/jobs/${name}/instances`);
  expect(items.map((instance) => instance.state)).toEqual(["SUCCESS"]);
  return items[0]!;
}

test("C1m a job for one time is created from the form, and runs once at that time", async () => {
  const name = fresh("at");
  await visiting({}, async (visit) => {
    const page = await visit.open("/jobs/new");
    const at = new Date(Math.ceil(Date.now() / 1_000) * 1_000 + 4_000);
    const inShanghai = new Date(at.getTime() + 8 * 3_600_000).toISOString().slice(0, 19);
    await fillOnce(page, name, "Once, at", "At", inShanghai.replace("T", " "));
    const ran = await ranOnce(page, name);
    expect(new Date(ran.executeTime).getTime()).toBe(at.getTime());
    expect(new Date(ran.startedAt).getTime()).toBeGreaterThanOrEqual(at.getTime());
  });
});

test("C1n a delayed job is created from the form, and runs once after its delay", async () => {
  const name = fresh("delay");
  await visiting({}, async (visit) => {
    const page = await visit.open("/jobs/new");
    await fillOnce(page, name, "Once, after", "After", "1s");
    const asked = Date.now();
    const ran = await ranOnce(page, name);
    expect(new Date(ran.startedAt).getTime()).toBeGreaterThanOrEqual(asked + 1_000);
  });
});

test("what is wrong is said at its field, while it is typed", async () => {
  await visiting({ mayFail: /status of 422/ }, async (visit) => {
    const page = await visit.open("/jobs/new");
    const cron = page.getByLabel("Cron expression");
    await cron.fill("61 * * * *");
    await until(async () => (await cron.getAttribute("aria-invalid")) === "true");
    await cron.fill("0 9 * * *");
    await until(async () => (await cron.getAttribute("aria-invalid")) !== "true");

    await page.getByLabel("Name", { exact: true }).fill("12345");
    await page.getByLabel("URL").fill("ftp://nowhere");
    for (const field of ["Name", "URL"]) {
      await until(async () => (await page.getByLabel(field, { exact: true }).getAttribute("aria-invalid")) === "true");
    }
    await visit.shoot("jobs-wrong");
  });
});

test("a job is paused with a note, resumed and run by hand with another payload", async () => {
  const name = fresh("held");
  await create(name, {});
  await visiting({ language: "zh-CN", scheme: "dark" }, async (visit) => {
    const page = await visit.open(`/jobs/${name}`);
    await page.getByRole("button", { name: "暂停", exact: true }).click();
    await dialog(page, `暂停 ${name}`).getByRole("textbox").fill(HOSTILE);
    await dialog(page, `暂停 ${name}`).getByRole("button", { name: "暂停", exact: true }).click();
    await page.getByRole("note").getByText(HOSTILE).waitFor();
    expect(await jobNamed(name)).toMatchObject({ status: "PAUSED", note: HOSTILE });

    await page.getByRole("button", { name: "恢复" }).click();
    await dialog(page, `恢复 ${name}`).getByRole("button", { name: "恢复" }).click();
    await page.getByRole("button", { name: "暂停", exact: true }).waitFor();
    expect((await jobNamed(name)).status).toBe("ACTIVE");

    await page.getByRole("button", { name: "立即运行" }).click();
    const run = dialog(page, `立即运行 ${name}`);
    await run.getByRole("textbox").fill(`{"n": 7, "text": ${JSON.stringify(HOSTILE)}}`);
    await run.getByRole("button", { name: "立即运行" }).click();
    await run.locator('[data-state="SUCCESS"]').waitFor();
    const made = await api<{ items: { payload: unknown }[] }>("GET", `/api/v1/jobs/${name}/instances`);
    expect(made.items.map((instance) => instance.payload)).toEqual([{ n: 7, text: HOSTILE }]);
    expect(await page.evaluate(() => "owned" in globalThis)).toBe(false);
  });
});

test("C3e C3g the priority, the retries and the schedule of a job are changed, and it is copied and deleted", async () => {
  const name = fresh("changed");
  await create(name, { cron: "0 9 * * *", payload: { shop: 1 }, overlap: "skip" });
  // The page of a job may look once more at what has just been deleted.
  await visiting({ mayFail: /status of 404/ }, async (visit) => {
    const page = await visit.open(`/jobs/${name}/edit`);
    await page.getByLabel("Cron expression").fill("0 10 * * *");
    await page.getByRole("button", { name: /^More: / }).click();
    await page.getByRole("combobox", { name: "Priority" }).click();
    await page.getByRole("option", { name: "High" }).click();
    await page.getByLabel("Retries").fill("4");
    await page.getByRole("button", { name: "Save changes" }).click();
    await page.getByRole("button", { name: "Save these changes" }).click();
    await page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
    const changed = { cron: "0 10 * * *", overlap: "skip", payload: { shop: 1 }, priority: "high" };
    expect(await jobNamed(name)).toMatchObject({ ...changed, retry: { maxRetry: 4 } });

    await page.getByRole("button", { name: `Actions for ${name}` }).click();
    await page.getByRole("menuitem", { name: "Duplicate" }).click();
    await page.getByRole("button", { name: "Create job" }).click();
    const copy = `${name}_copy`;
    await page.getByRole("heading", { level: 1, name: copy }).waitFor();
    expect(await jobNamed(copy)).toMatchObject({ cron: "0 10 * * *", overlap: "skip", payload: { shop: 1 } });

    await page.getByRole("button", { name: `Actions for ${copy}` }).click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await dialog(page, `Delete ${copy}?`).getByRole("button", { name: "Delete" }).click();
    await page.getByRole("heading", { level: 1, name: "Jobs" }).waitFor();
    await expect(jobNamed(copy)).rejects.toThrow("404");
  });
});

test("a change that somebody else was faster with is refused, not overwritten", async () => {
  const name = fresh("raced");
  await create(name, { cron: "0 9 * * *" });
  await visiting({ mayFail: /status of 412/ }, async (visit) => {
    const page = await visit.open(`/jobs/${name}/edit`);
    await api("PATCH", `/api/v1/jobs/${name}`, { overlap: "skip" });
    await page.getByLabel("Cron expression").fill("0 10 * * *");
    await page.getByRole("button", { name: "Save changes" }).click();
    await page.getByRole("alert").getByText("SCH_412_PRECONDITION").waitFor();
    expect(await jobNamed(name)).toMatchObject({ cron: "0 9 * * *", overlap: "skip" });
  });
});

test("C1p C21 a backfill is counted to the slot, started, and followed to its end", async () => {
  const name = fresh("filled");
  await create(name, { cron: "*/5 * * * *" });
  await visiting({}, async (visit) => {
    const page = await visit.open(`/jobs/${name}`);
    await page.getByRole("button", { name: "Backfill" }).click();
    const wizard = dialog(page, `Backfill ${name}`);
    const day = new Date(Date.now() - 172_800_000).toISOString().slice(0, 10);
    await wizard.getByRole("textbox", { name: "Start" }).fill(`${day}T00:00:00`);
    await wizard.getByRole("textbox", { name: /^End/ }).fill(`${day}T01:00:00`);
    await wizard.getByRole("button", { name: "Count slots" }).click();
    await wizard.getByLabel("Max concurrent").fill("4");
    await wizard.getByRole("button", { name: "Run 12 slots" }).click();
    await wizard.locator('[data-status="DONE"]').waitFor();
    await wizard.getByText("12 succeeded").waitFor();
    await visit.shoot("jobs-backfill");
    await wizard.getByRole("button", { name: "Close" }).last().click();
    await page.getByRole("heading", { level: 2, name: "Backfills" }).waitFor();
  });
});

test("a backfill under way is held, goes on and is cancelled", async () => {
  const name = fresh("slow");
  await create(name, { every: "1s" });
  const from = new Date(Date.now() - 3_600_000).toISOString();
  await api("POST", `/api/v1/jobs/${name}/backfill`, { from, rate: "1/s" }, fresh("key"));
  await visiting({}, async (visit) => {
    const page = await visit.open(`/jobs/${name}`);
    const card = page.locator("section[data-status]").first();
    await card.getByRole("button", { name: "Pause", exact: true }).click();
    await page.locator('section[data-status="PAUSED"]').waitFor();
    await card.getByRole("button", { name: "Resume" }).click();
    await page.locator('section[data-status="RUNNING"]').waitFor();
    await card.getByRole("button", { name: "Cancel backfill" }).click();
    await dialog(page, "Cancel this backfill?").getByRole("button", { name: "Cancel backfill" }).click();
    await page.locator('section[data-status="CANCELLED"]').waitFor();
  });
  await api("DELETE", `/api/v1/jobs/${name}`);
});

test("the list is filtered in its address, and a job is paused from its row", async () => {
  const name = fresh("row");
  await create(name, { every: "1h", tags: ["needle"], queue: "hay" });
  await visiting({}, async (visit) => {
    const page = await visit.open(`/jobs?name=${name.slice(0, 3)}&tag=needle`);
    const row = page.getByRole("row", { name });
    await row.waitFor();
    expect(await page.getByLabel("Tag").inputValue()).toBe("needle");
    await api("POST", `/api/v1/jobs/${name}/trigger`, {}, fresh("key"));
    await row.getByRole("img", { name: "Success" }).waitFor();
    await row.getByRole("button", { name: `Actions for ${name}` }).click();
    await page.getByRole("menuitem", { name: "Pause", exact: true }).click();
    await dialog(page, `Pause ${name}`).getByRole("button", { name: "Pause", exact: true }).click();
    await row.getByText("Paused").waitFor();

    await page.getByLabel("Name or title contains").fill("no such job");
    await page.getByText("No job matches").waitFor();
    expect(new URL(page.url()).searchParams.get("name")).toBe("no such job");
  });
});

test("hostile and endless texts are texts, and break nothing", async () => {
  const name = `${fresh("long")}${"x".repeat(80)}`;
  await create(name, {
    cron: "0 9 * * *",
    target: { ...TARGET, url: `${BASE}/healthz?${"y".repeat(1_500)}`, headers: { "X-Text": HOSTILE } },
    payload: { html: HOSTILE, rtl: "\u202Eabc\u05D0", long: "z".repeat(10_000) },
  });
  await api("POST", `/api/v1/jobs/${name}/pause`, { note: `${HOSTILE} \u202E ${"n".repeat(1_900)}` });
  await visiting({}, async (visit) => {
    for (const path of [`/jobs?name=${name}`, `/jobs/${name}`, `/jobs/${name}/edit`, `/jobs/new?like=${name}`]) {
      const page = await visit.open(path);
      expect(await page.evaluate(() => "owned" in globalThis)).toBe(false);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(wide, path).toBeLessThanOrEqual(0);
    }
    await visit.shoot("jobs-hostile");
  });
});

test("what happened to a slot is explained by the clocks of the page, at an address that can be sent", async () => {
  const name = fresh("explained");
  await create(name, { cron: "0 9 * * *", timezone: "Europe/Berlin" });
  const address = await visiting({}, async (visit) => {
    const page = await visit.open(`/jobs/${name}`);
    await page.getByLabel("At", { exact: true }).fill("2031-01-15 16:00");
    await page.getByText("Asia/Shanghai time").waitFor();
    await page.getByRole("button", { name: "Explain", exact: true }).click();
    await page.getByText("Upcoming", { exact: true }).waitFor();
    await page.getByText("2031-01-15 09:00:00 Europe/Berlin").waitFor();
    expect(new URL(page.url()).searchParams.get("at")).toBe("2031-01-15T08:00:00.000Z");
    await page.getByRole("link", { name: "Next slot" }).click();
    await page.waitForURL(/at=2031-01-16T08/);
    await page.getByText("2031-01-16 09:00:00 Europe/Berlin").waitFor();
    return page.url();
  });
  await visiting({ isAlone: true }, async (visit) => {
    const page = await visit.open(new URL(address).pathname + new URL(address).search);
    await page.getByText("2031-01-16 09:00:00 Europe/Berlin").waitFor();
    await page.getByLabel("At", { exact: true }).fill("9:00");
    await page.getByRole("button", { name: "Explain", exact: true }).click();
    await page.getByText("Not a slot", { exact: true }).waitFor();
    await page.getByRole("list", { name: "Next fires" }).getByRole("link").first().click();
    await page.getByText("Upcoming", { exact: true }).waitFor();
    await visit.shoot("job-explain");
  });
});

test("the last 13 weeks are walked through by keys, and a day leads to its instances", async () => {
  const name = fresh("days");
  await create(name, {});
  const { instance } = await api<{ instance: { id: string } }>("POST", `/api/v1/jobs/${name}/trigger`, {}, fresh("key"));
  await until(async () => (await api<{ state: string }>("GET", `/api/v1/instances/${instance.id}`)).state === "SUCCESS");
  await visiting({}, async (visit) => {
    const page = await visit.open(`/jobs/${name}`);
    const days = page.getByRole("group", { name: /^The last 13 weeks/ });
    const today = days.getByRole("link", { name: "1 succeeded" });
    await today.focus();
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Instances" }).waitFor();
    const asked = new URL(page.url()).searchParams;
    expect(asked.get("job")).toBe(name);
    expect(new Date(asked.get("to")!).getTime() - new Date(asked.get("from")!).getTime()).toBe(86_400_000);
    await page.getByRole("row").filter({ hasText: instance.id }).first().waitFor();
  });
});

test("what Horai runs for itself cannot be edited here, and says why", async () => {
  const [part, flow] = [fresh("part"), fresh("flow")];
  await create(part, {});
  await api("POST", "/api/v1/workflows", { name: flow, nodes: [{ name: "only", job: part }] }, fresh("key"));
  await visiting({}, async (visit) => {
    const page = await visit.open(`/jobs/${flow}`);
    const edit = page.getByRole("button", { name: "Edit" });
    expect(await edit.getAttribute("aria-disabled")).toBe("true");
    await edit.hover();
    await page.getByText(/Horai runs this job/).waitFor();
  });
});

test("the list of jobs is saved as a file, as it is filtered", async () => {
  const name = fresh("saved");
  await create(name, { tags: ["saved"] });
  await visiting({}, async (visit) => {
    const page = await visit.open(`/jobs?name=${name}`);
    await page.getByRole("button", { name: "Download" }).click();
    await page.getByRole("menuitem", { name: "CSV" }).click();
    const file = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save file" }).click();
    expect((await file).suggestedFilename()).toBe("jobs.csv");
  });
});
