import { beforeAll, expect, test } from "vitest";
import { visiting } from "./browser";
import { inAllLooks, pressing } from "./looks";
import { api, fresh, until } from "./server";

interface Instance {
  id: string;
  state: string;
  executeTime: string;
}

const FAR = "2999-01-01T00:00:00Z";
const HOSTILE = `<img src=x onerror=alert(1)>"'\u202Egnp.exe`;
const job = fresh("mail");
const slow = fresh("slow");
const evil = fresh("evil");
let planned: Instance;
let dead: Instance;

async function put(name: string, key: string, body: object): Promise<Instance> {
  const path = `/api/v1/jobs/${name}/instances/${encodeURIComponent(key)}`;
  return (await api<{ instance: Instance }>("PUT", path, body)).instance;
}

/** Nobody listens there: what goes out fails at once. */
const nowhere = { type: "http", url: "http://127.0.0.1:9/nobody" };

beforeAll(async () => {
  await api("POST", "/api/v1/jobs", { name: job, target: nowhere, retry: { maxRetry: 0 } }, fresh("once"));
  await api("POST", "/api/v1/jobs", { name: slow, target: nowhere, queue: slow }, fresh("once"));
  await api("POST", "/api/v1/jobs", { name: evil, target: nowhere, retry: { maxRetry: 0 } }, fresh("once"));
  const items = Array.from({ length: 700 }, (_, number) => ({ key: `bulk:${number}`, executeTime: FAR }));
  await api("POST", `/api/v1/jobs/${slow}/instances/batch`, { items });
  planned = await put(job, "customer:1", { executeTime: FAR, payload: { customer: 1 } });
  dead = await put(evil, `${HOSTILE}${"k".repeat(60)}`, { payload: { text: HOSTILE + "x".repeat(10_000) } });
  await until(async () => (await api<Instance>("GET", `/api/v1/instances/${dead.id}`)).state === "DEAD");
});
test("instances and one of them are right in both languages and schemes, with hostile texts in them", async () => {
  await inAllLooks([
    {
      path: `/instances?job=${evil}`,
      shows: (page) => page.getByRole("row").nth(1).waitFor(),
      dialogs: [pressing("instances:replayMany.all")],
    },
    { path: `/instances?job=${slow}&state=INIT`, dialogs: [pressing("instances:cancelMany.all", (page) => page.getByText(/700/).first().waitFor())] },
    {
      path: `/instances/${dead.id}`,
      shows: (page) => page.getByText(HOSTILE).first().waitFor(),
      dialogs: [pressing("instances:replay.open")],
    },
    {
      path: `/instances/${planned.id}`,
      shows: (page, say) => page.getByText(say("instances:why.hold.NOT_DUE"), { exact: true }).waitFor(),
      dialogs: [pressing("instances:reschedule.open"), pressing("instances:cancel.open")],
    },
  ]);
});

test("filters stand in the address, and a state is one click", async () => {
  await visiting({}, async (visit) => {
    const page = await visit.open(`/instances?job=${slow}`);
    await page.getByRole("button", { name: "Dead", exact: true }).click();
    await page.getByText("No instances match these filters").waitFor();
    expect(new URL(page.url()).searchParams.get("state")).toBe("DEAD");
    await page.getByRole("button", { name: "Dead", exact: true }).click();
    await page.getByLabel("Key begins with").fill("bulk:69");
    await page.getByText("11 in all").waitFor();
    await page.getByRole("button", { name: "Clear filters" }).click();
    expect(new URL(page.url()).search).toBe("");
  });
});

test("a long list comes page by page, and is drawn only where one looks", async () => {
  await visiting({}, async (visit) => {
    const page = await visit.open(`/instances?job=${slow}`);
    await page.getByText("100 of 700 loaded").waitFor();
    await page.getByRole("row").nth(3).focus();
    await page.keyboard.press("PageDown");
    await page.mouse.move(700, 480);
    await until(async () => {
      await page.mouse.wheel(0, 10_000);
      return page.getByText("700 in all").isVisible();
    });
    expect(await page.getByRole("row").count()).toBeLessThan(60);
    await page.getByRole("button", { name: "Jump to latest" }).click();
    await page.getByText("100 of 700 loaded").waitFor();
  });
});

test("an instance says why it waits, is moved to another time, and is cancelled", async () => {
  await visiting({}, async (visit) => {
    const page = await visit.open(`/instances/${planned.id}`);
    await page.getByText("Not due yet", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Reschedule" }).click();
    await page.getByLabel("New time").fill("2998-06-01T12:00:00");
    await page.getByRole("button", { name: "Move instance" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    const moved = await api<Instance>("GET", `/api/v1/instances/${planned.id}`);
    expect(moved.executeTime).toBe("2998-06-01T04:00:00Z");
    await page.getByText("2998-06-01 12:00:00").first().waitFor();

    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    await page.getByRole("button", { name: "Cancel instance" }).click();
    await page.locator('[data-state="CANCELLED"]').first().waitFor();
    await page.getByRole("button", { name: "Run again" }).click();
    await page.getByRole("button", { name: "Run now" }).click();
    await page.waitForURL((url) => !url.pathname.endsWith(`/${planned.id}`));
  });
});

test("what is dead is replayed from its own page, and each links to the other", async () => {
  await visiting({}, async (visit) => {
    const page = await visit.open(`/instances/${dead.id}`);
    await page.getByRole("button", { name: "Replay" }).click();
    await page.getByRole("button", { name: "Replay instance" }).click();
    await page.waitForURL((url) => !url.pathname.endsWith(`/${dead.id}`));
    await page.getByRole("link", { name: `#${dead.id}`, exact: true }).click();
    await page.getByText("Replayed as", { exact: true }).waitFor();
    expect(await page.getByRole("button", { name: "Replay" }).getAttribute("aria-disabled")).toBe("true");
  });
});

test("what was chosen, and then all that match, is cancelled; without a filter nothing is", async () => {
  await visiting({}, async (visit) => {
    const page = await visit.open("/instances");
    const all = page.getByRole("button", { name: "Cancel matching" });
    expect(await all.getAttribute("aria-disabled")).toBe("true");

    await visit.open(`/instances?job=${slow}&state=INIT`);
    await page.getByRole("row").nth(1).getByRole("checkbox").check();
    await page.getByRole("row").nth(2).getByRole("checkbox").check();
    await page.getByRole("button", { name: "Cancel selected" }).click();
    await page.getByRole("button", { name: "Cancel instances" }).click();
    await page.getByText("2 cancelled.").waitFor();
    await page.getByRole("button", { name: "Close", exact: true }).last().click();

    await all.click();
    await page.getByText("698 will be cancelled.").waitFor();
    await visit.shoot("cancel-many");
    await page.getByRole("button", { name: "Cancel instances" }).click();
    await page.getByText("698 cancelled.").waitFor();
    await visit.expectAccessible();
  });
});

test("what is planned comes with the next first, a short list is sorted by any column, and what is dead is replayed", async () => {
  const dying = fresh("dying");
  await api("POST", "/api/v1/jobs", { name: dying, target: nowhere, retry: { maxRetry: 0 } }, fresh("once"));
  const items = ["b", "c", "a"].map((key, number) => ({ key, payload: { shop: { id: number } } }));
  await api("POST", `/api/v1/jobs/${dying}/instances/batch`, { items: [...items, ...[1, 2].map((day) => ({ key: `later:${day}`, executeTime: `2999-01-0${day}T00:00:00Z` }))] });
  await until(async () => (await api<{ items: unknown[] }>("GET", `/api/v1/instances?job=${dying}&state=DEAD`)).items.length === 3);
  await visiting({ mayFail: /422/ }, async (visit) => {
    const keys = async (): Promise<string[]> => page.getByRole("gridcell").getByRole("link", { name: /^([abc]|later:\d)$/ }).allInnerTexts();
    const page = await visit.open(`/instances?job=${dying}`);
    await page.getByText("5 in all").waitFor();
    await page.getByText("Upcoming", { exact: true }).click();
    await page.getByText("2 in all").waitFor();
    expect(await keys()).toEqual(["later:1", "later:2"]);
    await page.getByText("Past & running", { exact: true }).click();
    await page.getByText("3 in all").waitFor();
    await page.getByRole("columnheader").getByRole("button", { name: "Key" }).click();
    expect(await keys()).toEqual(["c", "b", "a"]);
    await page.getByRole("button", { name: "More filters" }).click();
    await page.getByLabel("Payload field").fill("shop.id=1");
    await page.getByText("1 in all").waitFor();
    await page.getByRole("button", { name: "Replay matching" }).click();
    await page.getByText("1 will be replayed.").waitFor();
    await page.getByRole("button", { name: "Replay instances" }).click();
    await page.getByText("1 replayed.").waitFor();
    await page.getByRole("button", { name: "Close", exact: true }).last().click();

    await until(async () => (await api<{ items: unknown[] }>("GET", `/api/v1/instances?job=${dying}&state=DEAD`)).items.length === 4);
    await page.getByLabel("Payload field").fill("");
    await page.getByText("4 in all").waitFor();
    await page.getByRole("button", { name: "Replay matching" }).click();
    await page.getByText("3 will be replayed.").waitFor();
    await page.getByLabel("Rate").fill("often");
    await page.getByRole("button", { name: "Replay instances" }).click();
    await page.getByLabel("Rate").and(page.locator("[aria-invalid=true]")).waitFor();
    await page.getByLabel("Rate").fill("1/h");
    await page.getByRole("button", { name: "Replay instances" }).click();
    await page.getByText("3 replayed.").waitFor();
  });
  const { items: again } = await api<{ items: { replayOf: string | null; executeTime: string }[] }>("GET", `/api/v1/instances?job=${dying}`);
  const starts = again.filter((one) => one.replayOf !== null).map((one) => Date.parse(one.executeTime));
  expect(Math.max(...starts) - Math.min(...starts)).toBeGreaterThanOrEqual(3_600_000);
});

test("what matches is downloaded as a table", async () => {
  await visiting({}, async (visit) => {
    const page = await visit.open(`/instances?job=${slow}`);
    await page.getByRole("button", { name: "Download" }).click();
    await page.getByRole("menuitem", { name: "CSV" }).click();
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save file" }).click()]);
    expect(file.suggestedFilename()).toBe("instances.csv");
  });
});
