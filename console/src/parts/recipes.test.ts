import { expect, test } from "vitest";
import { tenantSetting } from "@/pages/access/recipes";
import { channelSetting, silencing } from "@/pages/alerts/recipes";
import { replayingMany } from "@/pages/dead-letters/recipes";
import { doingMany } from "@/pages/jobs/recipes";
import { changingRuns } from "@/pages/workflows/recipes";
import { curlOf, forEach, pythonOf, quoted, withFlags, withNote } from "./recipes";

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

test("a flag is given for each field that is set, and a field without a flag has no command", () => {
  const flags = { job: "--job", dry: "--dry-run", types: "--type" };
  expect(withFlags("horai dlq replay", { job: "a b", dry: true, tag: undefined, types: ["x", "y"] }, flags)).toBe("horai dlq replay --job 'a b' --dry-run --type x --type y");
  expect(withFlags("horai dlq replay", { instance: "7" }, flags)).toBeUndefined();
});

test("several objects are a loop, and one is a plain command", () => {
  expect(forEach("horai dlq replay", ["7"])).toBe("horai dlq replay 7");
  expect(forEach("horai jobs pause", ["a", "it's"], " --note x")).toBe(`for each in a 'it'\\''s'; do horai jobs pause "$each" --note x; done`);
});

test("there is no command where the command line cannot do the same", () => {
  expect(replayingMany({ ids: ["1", "2"], rate: "1/s" }).cli).toBeUndefined();
  expect(doingMany("trigger", { names: ["a", "b"], rate: "1/s" }).cli).toBeUndefined();
  expect(doingMany("delete", { nameContains: "a" }).cli).toBeUndefined();
  expect(silencing({ endsAt: "2026-11-20T00:00:00Z" }).cli).toBeUndefined();
  expect(changingRuns("flow", "rerun", { ids: ["1"] }).cli).toBeUndefined();
  expect(changingRuns("flow", "rerun", { state: "BLOCKED", rate: "1/s" }).cli).toBe("horai workflows rerun-blocked flow --rate 1/s");
});

test("a limit that is none is written as none, and copied texts of a channel hold no secrets", () => {
  const quotas = { jobs: 10, liveInstances: null, enqueuePerSecond: null, payloadBytes: null, concurrency: null, callbackNetworks: ["10.0.0.0/8", "::1/128"] };
  expect(tenantSetting("shop", { weight: 2, quotas, keepHistory: null }).cli).toBe(
    "horai tenants set shop --weight 2 --keep-history none --jobs 10 --live-instances none --enqueue-per-second none --payload-bytes none --concurrency none --callback-network 10.0.0.0/8 --callback-network ::1/128",
  );
  const recipe = channelSetting("hook", { kind: "webhook", language: "en", url: "https://hooks.example/T0KEN", secret: "hunter2" }, false);
  expect(curlOf(recipe, ORIGIN) + recipe.cli).not.toMatch(/T0KEN|hunter2/);
  expect(recipe.cli).toBe("horai alerts set-channel hook webhook language=en --url-file url.txt --secret-file secret.txt");
});
