import { expect, test } from "vitest";
import { spreadable } from "./spreading";

const hourly = { cron: "0 * * * *", timezone: "UTC" };
const daily = { cron: "0 9 * * *", timezone: "UTC" };

test("only the jobs of the schedules that are told are spread, each once, and none that has a jitter", () => {
  const jobs = [
    { name: "a", jitter: null },
    { name: "b", jitter: "5m" },
    { name: "a", jitter: null },
  ];
  const minute = {
    schedules: [
      { schedule: hourly, jobs: 3, fires: 3, names: jobs },
      { schedule: daily, jobs: 1, fires: 1, names: [{ name: "other", jitter: null }] },
    ],
  };
  expect(spreadable({ schedules: [{ schedule: hourly, jobs: 3, fires: 3, examples: [] }] }, minute)).toEqual(["a"]);
});
