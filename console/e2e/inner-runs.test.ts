import { afterAll, beforeAll, expect, test } from "vitest";
import { visiting } from "./browser";
import { inAllLooks } from "./looks";
import { api, fresh, until } from "./server";
import { Target } from "./target";

let target: Target;
const [job, asking] = [fresh("step"), fresh("asking")];
const [inner, outer] = [fresh("inner"), fresh("outer")];
let [run, child] = ["", ""];

interface Run {
  nodes: { name: string; state: string; childRun: { runId: string | null } | null; sensor: { polls: number } | null }[];
}

beforeAll(async () => {
  target = await Target.start();
  for (const name of [job, asking]) await api("POST", "/api/v1/jobs", { name, target: { type: "http", url: target.url(`/${name}`) }, retry: { maxRetry: 0 } }, fresh("once"));
  target.says(`/${asking}`, 200, { output: { "horai:wait": "no file yet" } });
  await api("POST", "/api/v1/workflows", { name: inner, nodes: [{ name: "render", job }] }, fresh("once"));
  const nodes = [
    { name: "load", job },
    { name: "report", workflow: inner, params: { day: { payload: "day" }, rows: { resultOf: "load" } } },
    { name: "file", job: asking, after: ["load"], sensor: { every: "1m", deadline: "2h" } },
    { name: "end", job, after: ["report", "file"] },
  ];
  await api("POST", "/api/v1/workflows", { name: outer, nodes }, fresh("once"));
  run = (await api<{ run: { id: string } }>("POST", `/api/v1/workflows/${outer}/trigger`, { payload: { day: "monday" } }, fresh("once"))).run.id;
  await until(async () => {
    const found = new Map((await api<Run>("GET", `/api/v1/workflows/${outer}/runs/${run}`)).nodes?.map((node) => [node.name, node]));
    child = found.get("report")?.childRun?.runId ?? "";
    return found.get("report")?.state === "SUCCESS" && (found.get("file")?.sensor?.polls ?? 0) > 0;
  });
});
afterAll(() => target.stop());

test("a node that runs a workflow links its run, and that run its parent; a sensor shows its polls and its deadline", async () => {
  await inAllLooks([{ path: `/workflows/${outer}/runs/${run}`, shows: (page) => page.locator('.react-flow__node button[data-kind="workflow"]').first().waitFor() }]);
  await visiting({ width: 1440, height: 900 }, async (visit) => {
    const page = await visit.open(`/workflows/${outer}/runs/${run}?node=file`);
    await page.getByText("asked once").first().waitFor();
    await page.getByText("Deadline", { exact: true }).waitFor();
    await visit.shoot("sensor");
    await page.locator(".react-flow__node button", { hasText: "report" }).click();
    await visit.shoot("inner-run");
    await page.getByRole("link", { name: child, exact: true }).last().click();
    await page.waitForURL(`**/workflows/${inner}/runs/${child}**`);
    await page.getByRole("link", { name: `report in ${outer}` }).click();
    await page.waitForURL(`**/workflows/${outer}/runs/${run}**`);
    expect(await page.locator('.react-flow__node button[data-kind="workflow"]').count()).toBe(1);
  });
});
