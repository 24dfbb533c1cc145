import { afterAll, beforeAll, test } from "vitest";
import { visiting } from "./browser";
import { inAllLooks, pressing } from "./looks";
import { api, fresh, until } from "./server";
import { HOSTILE, Target } from "./target";

let target: Target;
const job = fresh("publish");
const made = fresh("articles");
const evil = fresh("evil");
const FAR = "2999-01-01T00:00:00Z";

beforeAll(async () => {
  target = await Target.start();
  await api("POST", "/api/v1/jobs", { name: job, target: { type: "http", url: target.url("/publish") } }, fresh("once"));
  target.says("/waiting", 200, {
    items: [{ key: HOSTILE, executeTime: FAR }, { key: "a".repeat(400), executeTime: FAR }, { key: "no-time" }],
    nextCursor: null,
  });
  const query = `select key, execute_time from t where key > $1 order by key limit $2 -- ${HOSTILE}${"q".repeat(10_000)}`;
  const source = { type: "sql", query, databaseUrl: "postgresql://nowhere.invalid/shop" };
  await api("POST", "/api/v1/reconcilers", { name: evil, job, source }, fresh("once"));
  await api("POST", `/api/v1/reconcilers/${evil}/run`, undefined, fresh("once"));
});
afterAll(() => target.stop());

test("a reconciler is made in the form, whose faults stand at their fields, and its comparison is read", async () => {
  await visiting({ width: 1600, height: 1000, mayFail: /status of 422/ }, async (visit) => {
    const page = await visit.open("/reconcilers/new");
    await page.getByLabel("Name", { exact: true }).fill(made);
    await page.getByRole("combobox", { name: "Target job" }).fill(job);
    await page.getByRole("option", { name: job }).click();
    await page.getByRole("textbox", { name: "Query" }).fill("select 1");
    await page.getByRole("button", { name: "Create reconciler" }).click();
    await page.getByText("needs $1, the last key of the page before").waitFor();
    await page.getByText("HTTP address").click();
    await page.getByRole("textbox", { name: "Address" }).fill(target.url("/waiting"));
    await page.getByRole("button", { name: "Create reconciler" }).click();

    await page.getByRole("heading", { level: 1, name: made }).waitFor();
    await page.getByRole("button", { name: "Compare now" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Compare now" }).click();
    await page.getByText("2 missing, 2 created").first().waitFor();
    // Not just the first: every five minutes it compares by itself, and then all is well.
    await page.getByRole("row").filter({ hasText: "2 missing, 2 created" }).getByRole("button", { name: /^\d{4}-/ }).click();
    await page.getByRole("dialog").getByText(HOSTILE).waitFor();
    await page.getByRole("dialog").getByText("no-time").waitFor();
    await page.keyboard.press("Escape");

    await page.getByRole("link", { name: "Edit" }).click();
    await page.getByText("Manual", { exact: true }).click();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("definition").filter({ hasText: "Manual" }).waitFor();
  });
});

test("reconcilers are right in both languages and schemes, with hostile texts in them", async () => {
  await until(async () => (await api<{ lastReport: { error: string | null } | null }>("GET", `/api/v1/reconcilers/${evil}`)).lastReport?.error);
  await inAllLooks([
    { path: "/reconcilers", shows: (page) => page.getByRole("link", { name: evil }).waitFor() },
    {
      path: `/reconcilers/${evil}`,
      shows: (page) => page.getByText("could not be resolved").first().waitFor(),
      dialogs: [pressing("reconcilers:act.run")],
    },
    { path: "/reconcilers/new" },
    { path: `/reconcilers/${evil}/edit` },
  ]);
});

test("a reconciler is held and let go on", async () => {
  await visiting({ language: "zh-CN", scheme: "dark" }, async (visit) => {
    const page = await visit.open(`/reconcilers/${evil}`);
    await page.getByRole("button", { name: "暂停", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "暂停", exact: true }).click();
    await page.getByRole("button", { name: "恢复" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "恢复" }).click();
    await page.getByRole("button", { name: "暂停", exact: true }).waitFor();
  });
});
