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
