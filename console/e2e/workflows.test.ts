import { afterAll, beforeAll, expect, test } from "vitest";
import { visiting } from "./browser";
import { inAllLooks, pressing, type Showing } from "./looks";
import { api, fresh, until } from "./server";
import { HOSTILE, Target } from "./target";

interface Run {
  id: string;
  state: string;
}

let target: Target;
const [extract, score, report] = [fresh("extract"), fresh("score"), fresh("report")];
const workflow = fresh("nightly");

const stateOf = async (run: Run): Promise<string> => (await api<Run>("GET", `/api/v1/workflows/${workflow}/runs/${run.id}`)).state;

async function started(): Promise<Run> {
  const body = { payload: { text: HOSTILE } };
  return (await api<{ run: Run }>("POST", `/api/v1/workflows/${workflow}/trigger`, body, fresh("once"))).run;
}

const held: Showing = (page) => page.locator(".react-flow__node [data-held]").waitFor();

beforeAll(async () => {
  target = await Target.start();
  for (const name of [extract, score, report]) {
    const body = { name, target: { type: "http", url: target.url(`/${name}`) }, retry: { maxRetry: 0 } };
    await api("POST", "/api/v1/jobs", body, fresh("once"));
  }
  const nodes = [{ name: extract }, { name: score, after: [extract] }, { name: report, after: [score] }];
  await api("POST", "/api/v1/workflows", { name: workflow, cron: "0 2 * * *", nodes, tags: ["<img/src=x/onerror=alert(1)>"] }, fresh("once"));
});
afterAll(() => target.stop());

test("a workflow is made in the form, with its graph beside it, and its run is followed to the end", async () => {
  const name = fresh("made");
  await visiting({ width: 1600, height: 1000 }, async (visit) => {
    const page = await visit.open("/workflows/new");
    await page.getByLabel("Name", { exact: true }).fill(name);
    await page.getByLabel("Node", { exact: true }).nth(0).fill(extract);
    await page.getByLabel("Node", { exact: true }).nth(1).fill(report);
    await page.locator('input[aria-label="After"]').nth(1).click();
    await page.getByRole("option", { name: extract }).click();
    await page.keyboard.press("Escape");
    await page.locator(".react-flow__edge").waitFor({ state: "attached" });
    expect(await page.locator(".react-flow__node").count()).toBe(2);
    await page.getByText("At 02:00").first().waitFor();
    await page.getByRole("button", { name: "Create workflow" }).click();

    await page.getByRole("heading", { level: 1, name }).waitFor();
    await page.getByRole("button", { name: "Run now" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Run now" }).click();
    await page.getByRole("heading", { level: 1, name: /^Run \d+/ }).waitFor();
    await page.locator("main [data-state=SUCCESS]").nth(3).waitFor();
    await page.locator(".react-flow__node button[data-state=SUCCESS]").nth(1).waitFor();
  });
});

test("a circle is named while it is drawn, and by the server at the nodes; a fault of a name stands at its field", async () => {
  await visiting({ width: 1600, height: 1000, mayFail: /status of 422/ }, async (visit) => {
    const page = await visit.open("/workflows/new");
    await page.getByLabel("Name", { exact: true }).fill(fresh("circle"));
    await page.getByLabel("Node", { exact: true }).nth(0).fill(extract);
    await page.getByLabel("Node", { exact: true }).nth(1).fill(report);
    for (const [place, name] of [report, extract].entries()) {
      await page.locator('input[aria-label="After"]').nth(place).click();
      await page.getByRole("option", { name }).click();
      await page.keyboard.press("Escape");
    }
    await page.getByText("Cycle:").waitFor();
    await page.getByRole("button", { name: "Create workflow" }).click();
    await page.getByText(`contain a cycle: ${extract} → ${report} → ${extract}`).first().waitFor();
    await page.getByLabel("Node", { exact: true }).nth(0).fill("no such name!");
    await page.getByRole("button", { name: "Create workflow" }).click();
    await page.getByText(/^Use letters, digits/).waitFor();
  });
});

test("a dead node holds its run; replayed it lets it go on, and the run is done again from a node", async () => {
  target.says(`/${score}`, 500);
  const run = await started();
  await until(async () => (await stateOf(run)) === "BLOCKED");
  await inAllLooks([
    { path: "/workflows", shows: (page) => page.getByRole("link", { name: workflow }).first().waitFor() },
    { path: `/workflows/${workflow}`, shows: held, dialogs: [pressing("workflows:act.trigger")] },
    {
      path: `/workflows/${workflow}/runs/${run.id}`,
      shows: async (page, say) => {
        await held(page, say);
        await page.locator(".react-flow__node button").filter({ hasText: score }).click();
      },
      dialogs: [pressing("workflows:act.replay"), pressing("workflows:act.rerun"), pressing("workflows:act.cancel")],
    },
    { path: "/workflows/new" },
    { path: `/workflows/${workflow}/edit`, shows: (page) => page.locator(".react-flow__edge").nth(1).waitFor({ state: "attached" }) },
  ]);
  target.says(`/${score}`, 200);
  await visiting({ width: 1600, height: 1000 }, async (visit) => {
    const page = await visit.open(`/workflows/${workflow}/runs/${run.id}`);
    await page.getByText("Blocked by a failed node").waitFor();
    await page.getByRole("button", { name: "Replay" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Replay" }).click();
    await page.locator(`.react-flow__node button[data-state=SUCCESS]`).nth(2).waitFor();
    expect(await page.getByText("Blocked by a failed node").count()).toBe(0);

    await page.locator(".react-flow__node button").filter({ hasText: score }).click();
    await page.getByRole("button", { name: "Rerun from here" }).click();
    await page.getByRole("dialog").getByText(report).waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Rerun from here" }).click();
    await page.getByText("Reruns", { exact: true }).first().waitFor();
    await until(async () => (await stateOf(run)) === "SUCCESS");
  });
});

test("a run that nobody wants is given up, and a workflow is paused with a note and resumed", async () => {
  target.says(`/${score}`, 500);
  const run = await started();
  await until(async () => (await stateOf(run)) === "BLOCKED");
  await visiting({}, async (visit) => {
    const page = await visit.open(`/workflows/${workflow}/runs/${run.id}`);
    await page.getByRole("button", { name: "Cancel run" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel run" }).click();
    await page.locator("main button[aria-disabled=true]").filter({ hasText: "Cancel run" }).waitFor();
    expect(await stateOf(run)).toMatch(/CANCELLED|BLOCKED/);

    await visit.open(`/workflows/${workflow}`);
    await page.getByRole("button", { name: "Pause", exact: true }).click();
    await page.getByLabel("Reason (recorded)").fill(HOSTILE);
    await page.getByRole("dialog").getByRole("button", { name: "Pause", exact: true }).click();
    await page.getByText(HOSTILE).first().waitFor();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Pause", exact: true }).waitFor();
  });
});

test("a workflow has a title, a description and an owner in any script, and is found by them", async () => {
  const [name, owner, job] = [fresh("flow"), fresh("财务部"), fresh("step")];
  const title = `每日结算 ${name}`;
  await api("POST", "/api/v1/jobs", { name: job, target: { type: "http", url: "http://127.0.0.1:9/hook" } }, fresh("once"));
  await api("POST", "/api/v1/workflows", { name: fresh("other"), nodes: [{ name: "only", job }] }, fresh("once"));
  await api("POST", "/api/v1/workflows", { name, nodes: [{ name: "only", job, produces: ["sales"] }] }, fresh("once"));
  await visiting({}, async (visit) => {
    const page = await visit.open(`/workflows/${name}/edit`);
    await page.getByLabel("Title", { exact: true }).fill(title);
    await page.getByLabel("Owner", { exact: true }).fill(owner);
    await page.getByLabel("Description", { exact: true }).fill("每晚一次。\n失败时联系财务部。");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("button", { name: "Save these changes" }).click();
    await page.waitForURL(new RegExp(`/workflows/${name}$`));
    await page.getByRole("main").getByText("失败时联系财务部。").first().waitFor();
    await visit.shoot("workflow-labels");
    await page.getByRole("link", { name: owner }).click();
    await page.waitForURL(/owner=/);
    await page.getByText(title).waitFor();
    expect(await page.getByRole("row").count()).toBe(2);

    await visit.open("/workflows");
    await page.getByLabel("Name or title contains").fill(title.slice(0, 12));
    await page.waitForURL(/name=/);
    await page.getByText(title).waitFor();
    await visit.shoot("workflows-found");
    await page.getByLabel("Name or title contains").fill(fresh("没有"));
    await page.getByText("No workflow matches").waitFor();
  });
  expect(await api("GET", `/api/v1/workflows/${name}`)).toMatchObject({ title, owner, nodes: [{ produces: ["sales"] }] });
});
