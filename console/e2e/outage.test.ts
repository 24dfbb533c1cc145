import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { visiting } from "./browser";
import { api, control, fresh, until } from "./server";

const AWAY = /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED_ENCODING|status of 503/;

test("C54 C59j while the server is away the console only reads, and goes on when it is back", async () => {
  const base = await control("start");
  await visiting({ mayFail: AWAY, isAlone: true, base }, async (visit) => {
    await visit.page.clock.install();
    const page = await visit.open("/jobs/new");
    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByText("The scheduler is healthy").waitFor();
    const banner = page.getByText("Read-only: the scheduler is not responding");
    /** The waits between two looks grow up to 30 s: they are passed over, the answers are real. */
    const passTime = async (): Promise<void> => page.clock.fastForward(8_000);

    await control("stop");
    await until(async () => passTime().then(() => banner.isVisible()));
    await page.getByText("Several requests in a row failed").waitFor();
    expect(await page.getByText("last 10 minutes").isVisible()).toBe(true);
    await visit.shoot("read-only");
    await page.goBack();
    const create = page.getByRole("button", { name: "Create job" });
    expect(await create.getAttribute("aria-disabled")).toBe("true");

    await control("start");
    await until(async () => passTime().then(async () => !(await banner.isVisible())));
    expect(await create.getAttribute("aria-disabled")).not.toBe("true");
  });
});

interface Typed {
  name: string;
  title: string;
  url: string;
}

async function fillIn(page: Page, typed: Typed): Promise<void> {
  await page.getByLabel("Name", { exact: true }).fill(typed.name);
  await page.getByLabel("Title", { exact: true }).fill(typed.title);
  await page.getByText("Manual", { exact: true }).click();
  await page.getByLabel("URL").fill(typed.url);
}

async function stillTyped(page: Page): Promise<Typed> {
  const value = (label: string): Promise<string> => page.getByLabel(label, { exact: label !== "URL" }).inputValue();
  return { name: await value("Name"), title: await value("Title"), url: await value("URL") };
}

test("a database that is read-only refuses a form, and nothing that was typed is lost", async () => {
  const base = await control("start");
  const typed = { name: fresh("refused"), title: "夜间对账", url: `${base}/healthz` };
  await visiting({ mayFail: AWAY, isAlone: true, base }, async (visit) => {
    const page = await visit.open("/jobs/new");
    await fillIn(page, typed);
    await control("read-only");
    try {
      await page.getByRole("button", { name: "Create job" }).click();
      await page.getByRole("alert").filter({ hasText: "database" }).waitFor();
      expect(await stillTyped(page)).toEqual(typed);
    } finally {
      await control("writable");
    }
    const heading = page.getByRole("heading", { level: 1, name: typed.name });
    await until(async () => {
      if (await heading.isVisible()) return true;
      const create = page.getByRole("button", { name: "Create job" });
      if ((await create.isVisible()) && (await create.getAttribute("aria-disabled")) !== "true") await create.click({ timeout: 2_000 }).catch(() => undefined);
      return heading.isVisible();
    });
  });
  expect((await api<{ items: unknown[] }>("GET", `/api/v1/jobs?nameContains=${typed.name}`, undefined, undefined, base)).items).toHaveLength(1);
});

test("a server that answers after 3 s keeps what was typed, and two clicks create one job", async () => {
  const base = await control("start");
  const typed = { name: fresh("slow"), title: "夜间对账", url: `${base}/healthz` };
  await visiting({ mayFail: AWAY, isAlone: true, base }, async (visit) => {
    const page = await visit.open("/jobs/new");
    await page.route("**/api/v1/**", async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      await route.continue();
    });
    await fillIn(page, typed);
    const create = page.getByRole("button", { name: "Create job" });
    await create.click();
    await create.click({ force: true, timeout: 1_000 }).catch(() => undefined);
    expect(await stillTyped(page)).toEqual(typed);
    await page.getByRole("heading", { level: 1, name: typed.name }).waitFor();
    await page.unroute("**/api/v1/**");
  });
  expect((await api<{ items: unknown[] }>("GET", `/api/v1/jobs?nameContains=${typed.name}`, undefined, undefined, base)).items).toHaveLength(1);
});
