import { afterAll, beforeAll, expect, test } from "vitest";
import { visiting } from "./browser";
import { inAllLooks } from "./looks";
import { api, fresh, until } from "./server";
import { Target } from "./target";

/** Milliseconds from the address to the drawn graph of 500 nodes, on a machine that is busy with other tests. */
const MOST = 15_000;
const MANY = 500;

let target: Target;
const [job, chooser] = [fresh("step"), fresh("chooser")];
const [large, branching] = [fresh("large"), fresh("branching")];
let run = "";

beforeAll(async () => {
  target = await Target.start();
  for (const name of [job, chooser]) await api("POST", "/api/v1/jobs", { name, target: { type: "http", url: target.url(`/${name}`) }, retry: { maxRetry: 0 } }, fresh("once"));
  const step = (place: number) => ({ name: `step_${place}`, job, after: place === 0 ? [] : [`step_${Math.floor((place - 1) / 4)}`] });
  await api("POST", "/api/v1/workflows", { name: large, nodes: Array.from({ length: MANY }, (_, place) => step(place)) }, fresh("once"));

  target.says(`/${chooser}`, 200, { output: { "horai:branch": ["yes"], result: ["a", "b"] } });
  const nodes = [
    { name: "pick", job: chooser },
    { name: "yes", job, after: ["pick"], map: { over: "pick" } },
    { name: "no", job, after: ["pick"] },
    { name: "end", job, after: ["yes", "no"], triggerRule: "noneFailed" },
  ];
  await api("POST", "/api/v1/workflows", { name: branching, nodes }, fresh("once"));
  run = (await api<{ run: { id: string } }>("POST", `/api/v1/workflows/${branching}/trigger`, {}, fresh("once"))).run.id;
  await until(async () => (await api<{ state: string }>("GET", `/api/v1/workflows/${branching}/runs/${run}`)).state === "SUCCESS");
});
afterAll(() => target.stop());

test("a graph of 500 nodes is drawn whole within seconds, and a node of it is found by its name and can be read", async () => {
  for (const [width, height] of [[1440, 900], [390, 844]] as const) {
    await visiting({ width, height, isAlone: true }, async (visit) => {
      await visit.open("/workflows");
      const began = Date.now();
      const page = await visit.open(`/workflows/${large}`);
      await page.locator(".react-flow__node button").nth(MANY - 1).waitFor({ state: "attached" });
      expect(Date.now() - began).toBeLessThan(MOST);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
      await visit.shoot(`graph-500-${width}`);

      await page.getByLabel("Find a node").filter({ visible: true }).fill("step_437");
      await page.getByRole("option", { name: "step_437", exact: true }).click();
      const found = page.locator(".react-flow__node button b", { hasText: /^step_437$/ });
      await found.waitFor();
      await until(async () => (await found.boundingBox())!.height >= 12);
      await visit.shoot(`graph-500-found-${width}`);
      await page.getByRole("button", { name: "Show all" }).click();
      await page.locator(".react-flow__node button[data-far]").nth(MANY - 1).waitFor({ state: "attached" });
    });
  }
});

test("a chosen branch, a skipped node and a map are drawn apart from others", async () => {
  await inAllLooks([{ path: `/workflows/${branching}/runs/${run}`, shows: (page) => page.locator(".react-flow__edge.chosen").first().waitFor({ state: "attached" }) }]);
  await visiting({ width: 1440, height: 900 }, async (visit) => {
    const page = await visit.open(`/workflows/${branching}/runs/${run}`);
    await page.locator(".react-flow__edge.chosen").waitFor({ state: "attached" });
    const kinds = await page.locator(".react-flow__edge").evaluateAll((edges) => edges.map((edge) => [...edge.classList].findLast((name) => ["chosen", "skipped", "done"].includes(name))));
    expect(kinds.toSorted()).toEqual(["chosen", "done", "skipped", "skipped"]);
    const node = (name: string) => page.locator(".react-flow__node button").filter({ hasText: name });
    await node("yes").and(page.locator("[data-map]")).getByText("2 of 2").waitFor();
    await node("no").and(page.locator("[data-state=SKIPPED]")).waitFor();
    await node("end").getByText("none failed").waitFor();
    await visit.shoot("graph-branch");
  });
});
