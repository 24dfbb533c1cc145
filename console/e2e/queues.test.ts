import { beforeAll, expect, test } from "vitest";
import { visiting } from "./browser";
import { inAllLooks, pressing } from "./looks";
import { api, fresh } from "./server";

interface Queue {
  paused: boolean;
  maxConcurrency: number | null;
  rate: string | null;
}

const queue = fresh("q");

beforeAll(async () => {
  await api("PUT", `/api/v1/queues/${queue}`, { maxConcurrency: 4, rate: "30/m" });
});
test("queues, nodes and shards are right in both languages and schemes", async () => {
  await inAllLooks([
    {
      path: "/queues",
      shows: async (page) => {
        await page.getByText(queue).first().waitFor();
        await page.getByText("scheduler", { exact: true }).first().waitFor();
      },
      dialogs: [pressing("queues:form.edit"), pressing("queues:pause.pause")],
    },
  ]);
});

test("C3f a queue is paused, resumed and changed, and a wrong rate is said at its field", async () => {
  await visiting({ mayFail: /status of 422/ }, async (visit) => {
    const page = await visit.open("/queues");
    const row = page.getByRole("row").filter({ hasText: queue });
    const read = () => api<Queue>("GET", `/api/v1/queues/${queue}`);
    await page.getByText(/pid \d+, incarnation \d+,/).first().waitFor(); // ids have no separators
    const meter = await row.getByTitle(`Running instances of ${queue}`).getAttribute("href");
    expect(meter).toBe(`/instances?queue=${queue}&state=RUNNING`);
    await row.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await row.getByText("Paused").waitFor();
    expect((await read()).paused).toBe(true);
    await row.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
    await row.getByRole("button", { name: "Pause" }).waitFor();

    await row.getByRole("button", { name: "Edit" }).click();
    await page.getByLabel("Rate").fill("often");
    await page.getByRole("button", { name: "Save" }).click();
    await page.locator(".mantine-InputWrapper-error").first().waitFor();
    await page.getByLabel("Rate").fill("50/s");
    await page.getByLabel("Max concurrent").fill("9");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Save these changes" }).click();
    await row.getByText("50/s").waitFor();
    expect(await read()).toMatchObject({ maxConcurrency: 9, rate: "50/s", paused: false });
  });
});
