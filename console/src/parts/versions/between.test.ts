import { expect, test } from "vitest";
import { between } from "./between";

test("only fields of the definition that differ are changes, and absent is null", () => {
  const before = { version: 1, cron: "0 9 * * *", timezone: "UTC", tags: ["a"], title: null };
  const after = { version: 2, every: "5m", tags: ["a"], payload: { n: 1 } };

  expect(between(before, after)).toEqual([
    { field: "every", before: null, after: "5m" },
    { field: "payload", before: null, after: { n: 1 } },
    { field: "cron", before: "0 9 * * *", after: null },
    { field: "timezone", before: "UTC", after: null },
  ]);
});
