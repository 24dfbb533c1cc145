import { expect, test } from "vitest";
import type { ReconcilerOut, ReportSummary } from "@/api";
import { findingOf } from "./Drift";
import { changedBy, createdBy, draftOf, EMPTY } from "./draft";

test("a source is made of the fields of its kind only", () => {
  const draft = { ...EMPTY, name: " articles ", job: "publish", url: "https://shop/waiting", headers: "Authorization: Bearer a:b\nnonsense" };
  expect(createdBy({ ...draft, type: "http" })).toEqual({
    name: "articles",
    job: "publish",
    every: "5m",
    source: { type: "http", url: "https://shop/waiting", headers: { Authorization: "Bearer a:b" } },
  });
  expect(createdBy({ ...draft, isByName: false, databaseUrl: "postgresql://x" }).source).toEqual({
    type: "sql",
    query: EMPTY.query,
    databaseUrl: "postgresql://x",
  });
});

test("a change sends the source only where it is another, and secrets as they were shown", () => {
  const before = draftOf({ name: "a", job: "j", every: "5m", source: { type: "http", url: "https://shop", headers: { A: "***" } } } as unknown as ReconcilerOut);
  expect(changedBy({ ...before, schedule: { ...before.schedule, every: "1h" } }, before)).toEqual({ every: "1h", cron: null, timezone: null });
  expect(changedBy({ ...before, url: "https://new" }, before)).toMatchObject({ source: { type: "http", url: "https://new", headers: { A: "***" } } });
});

test("a report comes to the worst that is in it", () => {
  const report: ReportSummary = { id: "1", startedAt: "", finishedAt: "", found: 9, missing: 0, created: 0, surplus: 0, error: null };
  const findings = [report, { ...report, surplus: 1 }, { ...report, surplus: 1, missing: 2 }, { ...report, finishedAt: null }, { ...report, missing: 2, error: "x" }];
  expect(findings.map(findingOf)).toEqual(["agreed", "surplus", "drift", "running", "broken"]);
});
