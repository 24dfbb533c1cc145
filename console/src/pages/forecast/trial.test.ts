import { expect, test } from "vitest";
import { totalsOf, trialOf } from "./trial";

const draft = { kind: "cron", cron: " 0 9 * * * ", every: "10m ", timezone: "Europe/Berlin", jobs: 5_000 } as const;

test("a hypothetical cron has a zone, an interval has none", () => {
  expect(trialOf(draft)).toEqual({ cron: "0 9 * * *", timezone: "Europe/Berlin", jobs: 5_000 });
  expect(trialOf({ ...draft, kind: "every" })).toEqual({ every: "10m", jobs: 5_000 });
});

test("the fires of hypothetical jobs are added minute by minute", () => {
  expect(totalsOf({ from: "", perMinute: [1, 0, 2], added: [0, 5, 5] })).toEqual([1, 5, 7]);
  expect(totalsOf({ from: "", perMinute: [1, 0, 2], added: null })).toEqual([1, 0, 2]);
});
