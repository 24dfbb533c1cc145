import { beforeAll, expect, test } from "vitest";
import { visiting } from "./browser";
import { inAllLooks, pressing } from "./looks";
import { api, fresh, until } from "./server";

const HOSTILE = `<script>alert(1)</script>\u202Egnp`;
const job = fresh("dying");
const COUNT = 6;

interface Letters {
  items: { id: string; key: string }[];
}

const letters = async (status: string): Promise<Letters["items"]> =>
  (await api<Letters>("GET", `/api/v1/dlq?job=${job}&status=${status}`)).items;

beforeAll(async () => {
  const target = { type: "http", url: "http://127.0.0.1:9/nobody" };
  await api("POST", "/api/v1/jobs", { name: job, target, retry: { maxRetry: 0 }, tags: [HOSTILE] }, fresh("once"));
  const items = Array.from({ length: COUNT }, (_, number) => ({ key: `${HOSTILE}:${number}`, payload: { text: HOSTILE } }));
  await api("POST", `/api/v1/jobs/${job}/instances/batch`, { items });
  await until(async () => (await letters("NEW")).length === COUNT);
});
test("dead letters and one of them are right in both languages and schemes, with hostile texts in them", async () => {
  const [first] = await letters("NEW");
  await inAllLooks([
    {
      path: `/dead-letters?job=${job}`,
      shows: (page) => page.getByRole("row").nth(1).waitFor(),
      dialogs: [
        pressing("dead-letters:replay.open", (page) => page.getByText(`${COUNT}`).first().waitFor()),
        pressing("dead-letters:discard.matching", (page) => page.getByText(`${COUNT}`).first().waitFor()),
      ],
    },
    {
      path: `/dead-letters/${first!.id}`,
      shows: (page) => page.getByText(HOSTILE).first().waitFor(),
      dialogs: [pressing("dead-letters:replay.open"), pressing("dead-letters:discard.open")],
    },
  ]);
});

test("C3h a dead letter is replayed, another is discarded with its reason", async () => {
  const [first, second] = await letters("NEW");
  await visiting({}, async (visit) => {
    const page = await visit.open(`/dead-letters/${first!.id}`);
    await page.getByRole("button", { name: "Replay" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Replay" }).click();
    await page.getByText("Replayed as", { exact: true }).waitFor();
    expect(await page.getByRole("button", { name: "Replay" }).getAttribute("aria-disabled")).toBe("true");

    await visit.open(`/dead-letters/${second!.id}`);
    await page.getByRole("button", { name: "Discard" }).click();
    const confirm = page.getByRole("button", { name: "Discard letter" });
    expect(await confirm.getAttribute("aria-disabled")).toBe("true");
    await page.getByLabel("Reason").fill("the customer is gone");
    await confirm.click();
    await page.getByText("the customer is gone").waitFor();
  });
});

test("all of one fault are counted and replayed at a rate", async () => {
  await visiting({ mayFail: /status of 422/ }, async (visit) => {
    const page = await visit.open(`/dead-letters?job=${job}`);
    const open = (await letters("NEW")).length;
    await page.getByRole("listitem").getByRole("button", { name: "Replay" }).first().click();
    await page.getByText(`${open} will be replayed.`).waitFor();
    await page.getByLabel("Rate").fill("soon");
    await page.getByRole("dialog").getByRole("button", { name: "Replay", exact: true }).click();
    await page.locator(".mantine-InputWrapper-error").first().waitFor();
    await visit.shoot("replay-many");
    await page.getByLabel("Rate").fill("100/s");
    await page.getByRole("dialog").getByRole("button", { name: "Replay", exact: true }).click();
    await page.getByText(`${open} of ${open}`).waitFor();
    await page.getByRole("button", { name: "Close", exact: true }).last().click();
  });
});

test("what matches is discarded with a reason, and without a filter nothing is", async () => {
  const doomed = fresh("doomed");
  await api("POST", "/api/v1/jobs", { name: doomed, target: { type: "http", url: "http://127.0.0.1:9/nobody" }, retry: { maxRetry: 0 } }, fresh("once"));
  await api("POST", `/api/v1/jobs/${doomed}/instances/batch`, { items: [{ key: "a" }, { key: "b" }] });
  const open = async (): Promise<Letters["items"]> => (await api<Letters>("GET", `/api/v1/dlq?job=${doomed}&status=NEW`)).items;
  await until(async () => (await open()).length === 2);
  await visiting({}, async (visit) => {
    const page = await visit.open("/dead-letters");
    expect(await page.getByRole("button", { name: "Discard matching" }).getAttribute("aria-disabled")).toBe("true");
    await visit.open(`/dead-letters?job=${doomed}`);
    await page.getByRole("button", { name: "Discard matching" }).click();
    await page.getByText("2 will be discarded.").waitFor();
    const confirm = page.getByRole("button", { name: "Discard letters" });
    expect(await confirm.getAttribute("aria-disabled")).toBe("true");
    await page.getByRole("dialog").getByLabel("Reason").fill("the shop is closed");
    await confirm.click();
    await page.getByText("2 discarded.").waitFor();
  });
  expect(await open()).toEqual([]);
});
