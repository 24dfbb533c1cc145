import { beforeAll, expect, test } from "vitest";
import { visiting } from "./browser";
import { api, fresh } from "./server";

const [job, workflow] = [fresh("charge_cards_of_all_customers"), fresh("nightly_settlement_of_all_customers")];

beforeAll(async () => {
  await api("POST", "/api/v1/jobs", { name: job, target: { type: "http", url: "http://127.0.0.1:9/refused" }, retry: { maxRetry: 0 } }, fresh("once"));
  const names = Array.from({ length: 8 }, (_, number) => `step_number_${number}_of_the_settlement`);
  const nodes = names.map((name, number) => ({ name, job, ...(number > 0 && { after: [names[number - 1]] }) }));
  await api("POST", "/api/v1/workflows", { name: workflow, nodes }, fresh("once"));
  await api("POST", `/api/v1/jobs/${job}/trigger`, {}, fresh("once"));
});

test("the primary button of a page is the last one", async () => {
  await visiting({}, async (visit) => {
    for (const [path, name] of [["/jobs", "New job"], ["/workflows", "New workflow"], [`/jobs/${job}`, "Run now"], [`/workflows/${workflow}`, "Run now"]] as const) {
      const page = await visit.open(path);
      const main = page.getByRole("main");
      const primary = main.getByRole("link", { name, exact: true }).or(main.getByRole("button", { name, exact: true })).first();
      await primary.waitFor();
      const right = (await primary.boundingBox())!;
      const others = await main.getByRole("button").filter({ visible: true }).all();
      const inRow = (await Promise.all(others.map((each) => each.boundingBox()))).filter((box) => box !== null && Math.abs(box.y - right.y) < 12);
      expect(Math.max(...inRow.map((box) => box!.x + box!.width), 0), path).toBeLessThanOrEqual(right.x + right.width + 1);
    }
  });
});
