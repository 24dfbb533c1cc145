import { beforeAll, expect, test } from "vitest";
import { visiting } from "./browser";
import { speaker } from "./looks";
import { api, control, until } from "./server";

interface Step {
  kind: string;
  name: string;
  childId: string | null;
}

let base: string;
let caller: string;
let child: string;

beforeAll(async () => {
  base = await control("durable");
  await until(async () => (await api<{ items: unknown[] }>("GET", "/api/v1/jobs?name=checkout", undefined, undefined, base)).items.length > 0);
  caller = (await api<{ instance: { id: string } }>("PUT", "/api/v1/jobs/checkout/instances/order%3A1", { payload: "A-1" }, undefined, base)).instance.id;
  const steps = async () => (await api<{ items: Step[] }>("GET", `/api/v1/instances/${caller}/steps`, undefined, undefined, base)).items;
  child = (await until(async () => (await steps()).find((step) => step.kind === "CALL")?.childId))!;
});

test("the page of a durable instance has its steps with their results and errors, in both languages", async () => {
  for (const [language, scheme] of [["en", "light"], ["zh-CN", "dark"]] as const) {
    const say = speaker(language);
    await visiting({ language, scheme, base, isAlone: true }, async (visit) => {
      const page = await visit.open(`/instances/${caller}`);
      const steps = page.getByRole("list", { name: say("instances:steps.title"), exact: true });
      await steps.waitFor();
      for (const kind of ["STEP", "SLEEP", "WAIT", "CALL"]) {
        await steps.getByText(say(`instances:steps.kind.${kind}`), { exact: true }).first().waitFor();
      }
      await steps.getByText('{"order":"A-1"}').waitFor();
      await steps.getByText("ConnectionError").first().waitFor();
      await visit.shoot(`durable-${language}`);
      await visit.expectAccessible();
    });
  }
});

test("a caller and its child link to each other", async () => {
  await visiting({ base, isAlone: true }, async (visit) => {
    const page = await visit.open(`/instances/${caller}`);
    await page.getByText("its function has called other jobs").first().waitFor();
    await page.getByRole("link", { name: `Instance ${child} of print_invoice`, exact: true }).click();
    await page.getByText("Called by", { exact: true }).waitFor();
    await page.getByRole("link", { name: `#${caller}`, exact: true }).click();
    await page.waitForURL((url) => url.pathname.endsWith(`/${caller}`));
    expect(page.url()).toContain(base);
  });
});

async function put(job: string, key: string, payload: string): Promise<string> {
  return (await api<{ instance: { id: string } }>("PUT", `/api/v1/jobs/${job}/instances/${key}`, { payload }, undefined, base)).instance.id;
}

test("a waiting function gets its signal from the console and goes on", async () => {
  const waiting = await put("print_invoice", "order%3A2", "A-2");
  const waits = async () => (await api<{ waits: string[] }>("GET", `/api/v1/instances/${waiting}/steps`, undefined, undefined, base)).waits;
  await until(async () => (await waits()).includes("paper"));
  for (const [language, scheme] of [["en", "light"], ["zh-CN", "dark"]] as const) {
    const say = speaker(language);
    await visiting({ language, scheme, base, isAlone: true }, async (visit) => {
      const page = await visit.open(`/instances/${waiting}`);
      const dialog = page.getByRole("dialog");
      await page.getByRole("list", { name: say("instances:steps.title"), exact: true }).getByRole("button", { name: say("instances:signal.openNamed", { name: "paper" }) }).click();
      await dialog.waitFor();
      expect(await dialog.locator("input").first().inputValue()).toBe("paper");
      await visit.expectAccessible("[role=dialog]");
      await visit.shoot("durable-signal");
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });

      if (language === "en") return;
      await page.getByRole("main").getByRole("button", { name: say("instances:signal.open"), exact: true }).first().click();
      await dialog.getByLabel(say("instances:detail.payload")).fill('{"sheets": 2}');
      await dialog.getByRole("button", { name: say("instances:signal.open"), exact: true }).click();
      await page.getByText(say("instances:signal.woken", { name: "paper" })).waitFor();
      await dialog.waitFor({ state: "detached" });
      await page.getByText('{"sheets":2}').waitFor();
    });
  }
  const state = async () => (await api<{ state: string }>("GET", `/api/v1/instances/${waiting}`, undefined, undefined, base)).state;
  await until(async () => (await state()) === "SUCCESS");
});

test("a cancel in the console runs the compensations of the finished steps first", async () => {
  const waiting = await put("checkout", "order%3A3", "A-3");
  const path = `/api/v1/instances/${waiting}`;
  const compensations = async () => (await api<{ openCompensations: number }>("GET", `${path}/steps`, undefined, undefined, base)).openCompensations;
  await until(async () => (await compensations()) === 1);
  await visiting({ base, isAlone: true }, async (visit) => {
    const page = await visit.open(`/instances/${waiting}`);
    const dialog = page.getByRole("dialog");
    await page.getByRole("main").getByRole("button", { name: "Cancel", exact: true }).click();
    await dialog.getByRole("switch", { name: "Undo 1 finished step first" }).click();
    await visit.expectAccessible("[role=dialog]");
    await visit.shoot("durable-cancel");
    await dialog.getByRole("button", { name: "Cancel instance" }).click();
    await page.getByText("The compensation of load#1 runs; then the instance is cancelled.").waitFor();
    await page.getByRole("list", { name: "Steps", exact: true }).getByText("Compensation begins").waitFor();
  });
  await until(async () => (await api<{ state: string }>("GET", path, undefined, undefined, base)).state === "CANCELLED");
  const { items } = await api<{ items: (Step & { state: string })[] }>("GET", `${path}/steps`, undefined, undefined, base);
  expect(items.filter((step) => step.kind === "COMPENSATION").map((step) => [step.name, step.state])).toEqual([["load", "FINISHED"]]);
});
