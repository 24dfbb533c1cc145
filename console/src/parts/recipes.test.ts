import { expect, test } from "vitest";
import { curlOf, pythonOf, quoted, withNote } from "./recipes";

const ORIGIN = "http://127.0.0.1:8470";

test("what a shell would understand otherwise is quoted", () => {
  expect(quoted("coupon_job")).toBe("coupon_job");
  expect(quoted("it's $(rm -rf /)")).toBe(`'it'\\''s $(rm -rf /)'`);
});

test("an action as curl carries its body and a key of its own", () => {
  const recipe = { method: "POST", path: "/api/v1/jobs/a%20b/trigger", body: { payload: { n: 1 } }, isOnce: true } as const;

  expect(curlOf(recipe, ORIGIN)).toBe(
    [
      `curl -X POST http://127.0.0.1:8470/api/v1/jobs/a%20b/trigger`,
      `-H "Idempotency-Key: $(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen)"`,
      `-H 'Content-Type: application/json'`,
      `-d '{"payload":{"n":1}}'`,
    ].join(" \\\n  "),
  );
  expect(pythonOf(recipe, ORIGIN)).toContain(`data="{\\"payload\\":{\\"n\\":1}}".encode()`);
});

test("a note goes with the body and with the command, and an empty one with neither", () => {
  const recipe = { method: "POST", path: "/api/v1/jobs/a/pause", cli: "horai jobs pause a" } as const;

  expect(withNote(recipe, "note", "")).toBe(recipe);
  expect(withNote(recipe, "note", "it's late")).toEqual({ ...recipe, body: { note: "it's late" }, cli: `horai jobs pause a --note 'it'\\''s late'` });
});
