import { beforeAll, expect, test } from "vitest";
import { visiting } from "./browser";
import { inAllLooks, pressing } from "./looks";
import { api, fresh, until } from "./server";

const word = fresh("bulk");
const [stock, flow] = [fresh("bulkstock"), fresh("bulkflow")];
const target = { type: "http", url: "http://127.0.0.1:9/hook" };

const counted = async (path: string): Promise<number> => (await api<{ count: number }>("GET", `/api/v1/${path}`)).count;
const runsOf = async (job: string): Promise<unknown[]> => (await api<{ items: unknown[] }>("GET", `/api/v1/instances?job=${job}`)).items;

beforeAll(async () => {
  for (const number of [0, 1, 2]) await api("POST", "/api/v1/jobs", { name: `${word}-${number}`, target, retry: { maxRetry: 0 } }, fresh("once"));
  await api("POST", "/api/v1/jobs", { name: stock, every: "1d", refresh: { window: "10d" }, target }, fresh("once"));
  await api("POST", `/api/v1/jobs/${stock}/entities/batch`, { items: ["a1", "a2", "a3", "b1"].map((key) => ({ key })) });
  await api("POST", "/api/v1/workflows", { name: flow, nodes: [{ name: "only", job: `${word}-0` }] }, fresh("once"));
  for (let number = 0; number < 3; number += 1) await api("POST", `/api/v1/workflows/${flow}/trigger`, {}, fresh("once"));
  await until(async () => (await counted(`workflows/${flow}/runs/count?state=BLOCKED`)) === 3);
});

test("bulk changes are asked for in both languages and schemes", async () => {
  await inAllLooks([
    { path: `/jobs?name=${word}`, dialogs: [pressing("jobs:pauseMany.all")] },
    { path: `/refresh/${stock}?prefix=a`, dialogs: [pressing("refresh:removeMany.all")] },
    { path: `/workflows/${flow}?state=BLOCKED`, dialogs: [pressing("workflows:rerunMany.all"), pressing("workflows:cancelMany.all")] },
  ]);
});

test("jobs that were selected, and then all that match, are paused and resumed; without a filter none is", async () => {
  await visiting({}, async (visit) => {
    const page = await visit.open("/jobs");
    expect(await page.getByRole("button", { name: "Pause matching" }).getAttribute("aria-disabled")).toBe("true");
    await visit.open(`/jobs?name=${word}`);
    await page.getByRole("row").nth(1).getByRole("checkbox").check();
    await page.getByRole("button", { name: "Pause selected" }).click();
    await page.getByText("1 will be paused.").waitFor();
    await page.getByLabel("Note").fill("stocktaking");
    await page.getByRole("button", { name: "Pause jobs" }).click();
    await page.getByText("1 paused.").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Close", exact: true }).last().click();
    expect(await counted(`job-count?nameContains=${word}&status=PAUSED`)).toBe(1);

    await page.getByRole("button", { name: "Pause matching" }).click();
    await page.getByText("2 will be paused.").waitFor();
    await page.getByRole("button", { name: "Pause jobs" }).click();
    await page.getByText("2 paused.").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Close", exact: true }).last().click();
    await page.getByRole("button", { name: "Resume matching" }).click();
    await page.getByRole("button", { name: "Resume jobs" }).click();
    await page.getByText("3 resumed.").waitFor();
  });
  expect(await counted(`job-count?nameContains=${word}&status=ACTIVE`)).toBe(3);
});

test("entities that were selected, and then all that match, are removed", async () => {
  await visiting({}, async (visit) => {
    const page = await visit.open(`/refresh/${stock}?prefix=a`);
    await page.getByRole("row").nth(1).getByRole("checkbox").check();
    await page.getByRole("button", { name: "Remove selected" }).click();
    await page.getByText("1 will be removed.").waitFor();
    await page.getByRole("button", { name: "Remove entities" }).click();
    await page.getByText("1 removed.").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Close", exact: true }).last().click();
    await page.getByRole("button", { name: "Remove matching" }).click();
    await page.getByText("2 will be removed.").waitFor();
    await page.getByRole("button", { name: "Remove entities" }).click();
    await page.getByText("2 removed.").waitFor();
  });
  expect(await counted(`jobs/${stock}/entity-count`)).toBe(1);
});

test("blocked runs that match are rerun, and those that were selected are cancelled", async () => {
  await visiting({}, async (visit) => {
    const page = await visit.open(`/workflows/${flow}?state=BLOCKED`);
    await page.getByRole("button", { name: "Rerun matching" }).click();
    await page.getByText("3 will be rerun.").waitFor();
    await page.getByRole("button", { name: "Rerun blocked runs" }).click();
    await page.getByText("3 rerun.").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Close", exact: true }).last().click();
    await until(async () => (await counted(`workflows/${flow}/runs/count?state=BLOCKED`)) === 3);
    await visit.load(`/workflows/${flow}?state=BLOCKED`);
    await page.getByRole("grid", { name: "Runs", exact: true }).getByRole("row").nth(1).getByRole("checkbox").check();
    await page.getByRole("button", { name: "Cancel selected" }).click();
    await page.getByText("1 will be cancelled.").waitFor();
    await page.getByRole("button", { name: "Cancel runs" }).click();
    await page.getByText("1 cancelled.").waitFor();
  });
  expect(await counted(`workflows/${flow}/runs/count?state=BLOCKED`)).toBe(2);
});

test("jobs that match are run with a payload at a rate, and those that were selected are deleted", async () => {
  const [family, other] = [fresh("family"), fresh("other")];
  for (const name of [`${family}-a`, `${family}-b`, other]) await api("POST", "/api/v1/jobs", { name, target, retry: { maxRetry: 0 } }, fresh("once"));
  await visiting({}, async (visit) => {
    const page = await visit.open("/jobs");
    await page.getByRole("button", { name: "More for matching jobs" }).click();
    await page.getByText("Without a filter this would run every job.").waitFor();
    await visit.open(`/jobs?name=${family}`);
    await page.getByRole("button", { name: "More for matching jobs" }).click();
    await page.getByRole("menuitem", { name: "Run matching" }).click();
    await page.getByText("2 will run.").waitFor();
    await page.getByRole("dialog").getByRole("textbox", { name: "Payload" }).fill('{"day": 1}');
    await page.getByLabel("Rate").fill("10/s");
    await visit.expectAccessible("[role=dialog]");
    await visit.shoot("run-many");
    await page.getByRole("button", { name: "Run jobs" }).click();
    await page.getByText("2 started.").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Close", exact: true }).last().click();
    expect((await Promise.all([`${family}-a`, `${family}-b`, other].map(runsOf))).map((runs) => runs.length)).toEqual([1, 1, 0]);

    await page.getByRole("row").nth(1).getByRole("checkbox").check();
    await page.getByRole("button", { name: "Delete selected" }).click();
    await page.getByText("1 will be deleted.").waitFor();
    await page.getByRole("button", { name: "Delete jobs" }).click();
    await page.getByText("1 deleted.").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Close", exact: true }).last().click();
    await page.getByRole("row").nth(2).waitFor({ state: "detached" });
  });
  expect(await counted(`job-count?nameContains=${family}`)).toBe(1);
  expect(await counted(`job-count?nameContains=${other}`)).toBe(1);
});

test("dead letters that were selected are replayed at a rate, and another one is discarded", async () => {
  const dying = fresh("dying");
  await api("POST", "/api/v1/jobs", { name: dying, target: { type: "http", url: "http://127.0.0.1:9/nobody" }, retry: { maxRetry: 0 } }, fresh("once"));
  await api("POST", `/api/v1/jobs/${dying}/instances/batch`, { items: [{ key: "a" }, { key: "b" }, { key: "c" }] });
  const open = async (): Promise<unknown[]> => (await api<{ items: unknown[] }>("GET", `/api/v1/dlq?job=${dying}&status=NEW`)).items;
  await until(async () => (await open()).length === 3);
  await visiting({}, async (visit) => {
    const page = await visit.open(`/dead-letters?job=${dying}`);
    await page.getByRole("row").nth(1).getByRole("checkbox").check();
    await page.getByRole("row").nth(2).getByRole("checkbox").check();
    await page.getByRole("button", { name: "Replay selected" }).click();
    await page.getByText("2 will be replayed.").waitFor();
    expect(await page.getByLabel("Limit").count()).toBe(0);
    await page.getByLabel("Rate").fill("30/h");
    await page.getByRole("dialog").getByRole("button", { name: "Replay", exact: true }).click();
    await page.getByText("2 replayed.").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Close", exact: true }).last().click();

    await page.getByRole("row").nth(1).getByRole("checkbox").check();
    await page.getByRole("button", { name: "Discard selected" }).click();
    await page.getByText("1 will be discarded.").waitFor();
    await page.getByRole("dialog").getByLabel("Reason").fill("tested");
    await visit.shoot("discard-selected");
    await page.getByRole("button", { name: "Discard letters" }).click();
    await page.getByText("1 discarded.").waitFor();
  });
  expect((await api<{ items: unknown[] }>("GET", `/api/v1/dlq?job=${dying}&status=DISCARDED`)).items).toHaveLength(1);
  expect((await api<{ items: unknown[] }>("GET", `/api/v1/dlq?job=${dying}&status=REPLAYED`)).items).toHaveLength(2);
});
