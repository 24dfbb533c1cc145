import { describe, expect, test } from "vitest";
import type { JobOut } from "@/api";
import { draftOf, EMPTY, jobOf, nameLike, patchOf } from "./draft";

const JOB: JobOut = {
  id: "7",
  name: "coupon_job",
  status: "ACTIVE",
  cron: "0 */5 * * * ?",
  timezone: "Asia/Shanghai",
  target: { type: "http", url: "https://example.com/run", method: "POST", headers: { "X-Team": "a" } },
  payload: { shop: 1 },
  queue: "default",
  priority: "normal",
  retry: { maxRetry: 5, base: "500ms", cap: "5m", jitter: "additive", maxLost: 20 },
  timeout: "5s",
  misfire: { policy: "all", maxCatchup: 10, window: null },
  overlap: "skip",
  tags: ["shop"],
  note: null,
  version: 3,
  createdAt: "2026-11-15T09:00:00Z",
  updatedAt: "2026-11-15T09:00:00Z",
};

describe("what is sent", () => {
  test("a draft says what was typed, and leaves defaults to the server", () => {
    const draft = { ...EMPTY, name: " coupon_job ", cron: "0 */5 * * * ?", timezone: "UTC", url: "https://example.com" };
    expect(jobOf(draft)).toEqual({
      name: "coupon_job",
      cron: "0 */5 * * * ?",
      timezone: "UTC",
      target: { type: "http", url: "https://example.com", method: "POST" },
    });
  });

  test("what only means something beside a schedule is not sent without one", () => {
    const draft = { ...EMPTY, name: "a", when: "manual" as const, jitter: "5s", overlap: "skip" as const, calendar: ["12-25"] };
    expect(jobOf({ ...draft, targetType: "worker" })).toEqual({ name: "a", target: { type: "worker" } });
    const nats = { type: "nats", broker: "main", subject: "orders.paid" };
    expect(jobOf({ ...draft, targetType: "nats", broker: "main", subject: " orders.paid " })).toEqual({ name: "a", target: nats });
    expect(jobOf({ ...draft, targetType: "nats", broker: "main", subject: "orders.paid", settleOn: "reported" })).toEqual({
      name: "a",
      target: { ...nats, settleOn: "reported" },
    });
  });

  test("labels are kept, and an empty one is removed", () => {
    const labelled = { ...JOB, title: "发放优惠券", description: "一\n二", owner: "市场部" };
    const draft = draftOf(labelled);
    expect(jobOf(draft)).toMatchObject({ title: "发放优惠券", description: "一\n二", owner: "市场部" });
    expect(jobOf({ ...draft, owner: " " })).not.toHaveProperty("owner");
    expect(patchOf(draft, { ...draft, owner: "" })).toEqual({ owner: null });
  });

  test("a target that takes batches keeps its size", () => {
    const target = { type: "http" as const, url: "https://example.com", method: "POST", batch: { size: 100 } };
    const draft = draftOf({ ...JOB, target });
    expect(draft.batchSize).toBe("100");
    expect(jobOf(draft).target).toEqual(target);
    expect(jobOf({ ...draft, batchSize: "" }).target).not.toHaveProperty("batch");
  });

  test("a named calendar is typed as one entry, and dates stay dates", () => {
    const draft = { ...draftOf({ ...JOB, calendar: { name: "cn-workdays", onHoliday: "after" } }) };
    expect(draft.calendar).toEqual(["cn-workdays:after"]);
    expect(jobOf(draft).calendar).toEqual({ name: "cn-workdays", onHoliday: "after" });
    expect(jobOf({ ...draft, calendar: ["cn-workdays"] }).calendar).toEqual({ name: "cn-workdays" });
    expect(jobOf({ ...draft, calendar: ["12-25", "12-26"] }).calendar).toEqual(["12-25", "12-26"]);
  });

  test("an interval after each run has neither overlap nor misfire", () => {
    const draft = { ...EMPTY, name: "a", when: "every" as const, every: "5m", isFromFinish: true, overlap: "skip" as const };
    expect(jobOf({ ...draft, misfire: "all", targetType: "worker" })).toMatchObject({ every: "5m", everyFrom: "finish" });
    expect(jobOf({ ...draft, misfire: "all", targetType: "worker" })).not.toHaveProperty("overlap");
  });

  test("a number that is none goes to the server as it was typed: it says what is wrong", () => {
    expect(jobOf({ ...EMPTY, maxRetry: "many" }).retry).toEqual({ maxRetry: "many" });
  });
});

describe("what is changed", () => {
  test("nothing, when nothing was touched", () => {
    expect(patchOf(draftOf(JOB), draftOf(JOB))).toEqual({});
  });

  test("only what was touched, and null for what was taken away", () => {
    const draft = { ...draftOf(JOB), overlap: "allow" as const, tags: [], cron: "0 0 * * * ?" };
    expect(patchOf(draftOf(JOB), draft)).toEqual({ overlap: null, tags: null, cron: "0 0 * * * ?" });
  });

  test("a new kind of schedule takes the old one away", () => {
    const patch = patchOf(draftOf(JOB), { ...draftOf(JOB), when: "every", every: "10m" });
    expect(patch).toMatchObject({ cron: null, every: "10m", timezone: null });
  });

  test("the instance of a job at one time is not moved", () => {
    const once = draftOf({ ...JOB, cron: null, at: "2026-11-16T00:00:00Z", misfire: "once", overlap: "allow" });
    expect(patchOf(once, { ...once, when: "cron", cron: "0 9 * * *" })).toEqual({ cron: "0 9 * * *", timezone: "Asia/Shanghai" });
  });
});

test("a job and its form say the same", () => {
  const { name, cron, timezone, target, payload, queue, priority, retry, timeout, overlap, tags } = JOB;
  const said = { name, cron, timezone, target, payload, queue, priority, retry, timeout, overlap, tags };
  expect(jobOf(draftOf(JOB))).toEqual({ ...said, misfire: { policy: "all", maxCatchup: 10 } });
});

test("copies of copies have names of their own", () => {
  expect(["report", "report_copy", "report_copy2"].map(nameLike)).toEqual(["report_copy", "report_copy2", "report_copy3"]);
});
