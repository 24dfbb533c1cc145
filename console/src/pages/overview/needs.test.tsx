import { cleanup, screen, waitFor, within } from "@testing-library/react";
import { beforeEach, expect, test } from "vitest";
import type { AttentionOut, HolderOut, RootCauseOut, StuckCauseOut, StuckRunOut } from "@/api";
import { draw, inLanguage } from "@/testing/render";
import { answers, network } from "@/testing/server";
import { Attention } from "./Attention";
import { needsOf } from "./needs";

const AT = "2026-11-15T12:00:00Z";

const RUN: StuckRunOut = {
  id: "81", job: "hanging", jobId: "8", queue: "narrow", key: null, attempt: 1, node: "n", startedAt: AT, p95Ms: 1000, longestMs: null, stuckSince: AT,
};
const HOLDER: HolderOut = { id: "83", job: "export", jobId: "83", key: null, node: "n", startedAt: AT };
const CAUSE: RootCauseOut = {
  node: "load", job: "load", jobId: "9", instanceId: "92", errorCode: "HTTP_500", errorMsg: "down", diedAt: AT, blocks: ["report", "mail"],
  advice: "Rerun.", adviceSaid: { code: "RERUN_BLOCKED", text: "Rerun.", params: { node: "load" } },
};

const EVERYTHING: AttentionOut = {
  dying: [{ job: "dying", jobId: "1", instances: 3, lastAt: AT, errorCode: "HTTP_500" }],
  failing: [{ job: "failing", jobId: "2", instances: 2, lastAt: AT, errorCode: null }],
  late: { count: 7, more: false, examples: [{ id: "71", job: "late", jobId: "3", key: null, due: AT }] },
  lostNodes: [
    { incarnation: "9", name: "worker-9", host: "h", pid: 1, roles: [], startedAt: AT, leaseUntil: AT, fencedAt: AT, rescuedAt: null },
  ],
  pausedJobs: { count: 8, more: false, examples: [{ id: "4", name: "paused", note: "why", pausedAt: AT, waiting: { count: 1000, more: true } }] },
  pausedQueues: [{ name: "held", updatedAt: AT, note: null, waiting: { count: 2, more: false } }],
  backfills: [{ id: "5", job: "filled", jobId: "5", status: "RUNNING", total: 10, made: 3, ended: 2, createdAt: AT }],
  drifts: [{ id: "6", name: "desk", reportId: "6", startedAt: AT, missing: 5, created: 3, surplus: null, faulty: 0, error: null }],
  staleRefreshes: [{ job: "stale", jobId: "7", window: "1d", oldest: AT }],
  modes: [{ mode: "CORE_ONLY", since: AT }],
  holds: [{ what: "dispatch", scope: "tenant", since: AT, expiresAt: AT, note: "moving house", actor: "key ops" }],
  stuck: [{ ...RUN, waiting: 4, blocks: 0 }],
  clogged: [{ name: "narrow", slots: 1, since: AT, waiting: 4, holders: [RUN] }],
  full: [{ name: "wide", slots: 2, since: AT, waiting: 20, holders: [HOLDER, { ...HOLDER, id: "84" }] }],
  blocked: [{ id: "91", workflow: "nightly", workflowId: "9", fireTime: AT, waiting: 2, rootCauses: [CAUSE] }],
  failingChannels: [
    { name: "ops", kind: "slack", status: "PENDING", attempt: 7, httpStatus: 503, error: "HTTP 503", since: AT },
    { name: "mail", kind: "email", status: "FAILED", attempt: 9, httpStatus: null, error: "no answer", since: AT },
  ],
  parkedSinks: [{ name: "billing", kind: "webhook", failures: 9, failingSince: AT, lastError: "HTTP 500" }],
  failingBackups: [{ failedAt: AT, error: "The disk is full.", successAt: null, isOverdue: false }],
  computedAt: AT,
};

beforeEach(() => void network("/api/v1/session"));

/** Where the lines lead to, one after the other. */
function leads(found: AttentionOut): string[][] {
  draw(<ul>{needsOf(found)}</ul>);
  return screen.getAllByRole("listitem").map((line) =>
    within(line)
      .queryAllByRole("link")
      .map((link) => decodeURIComponent(link.getAttribute("href") ?? "")),
  );
}

test("whatever needs somebody leads to its page, the worst first", async () => {
  await inLanguage("en", "overview");
  expect(leads(EVERYTHING)).toEqual([
    ["/queues", "/instances/81"],
    ["/queues", "/instances/83", "/instances/84"],
    ["/jobs/hanging", "/instances/81"],
    ["/jobs/dying", "/dead-letters?job=dying"],
    ["/instances/71", "/instances/71"],
    ["/queues", "/queues"],
    ["/jobs/failing", "/instances?job=failing&state=FAIL", "/instances?job=failing&state=FAIL"],
    ["/workflows/nightly/runs/91", "/instances/92"],
    ["/alerts"],
    ["/alerts"],
    ["/sinks"],
    [],
    ["/governor", "/governor"],
    ["/governor", "/governor"],
    ["/queues"],
    ["/jobs/paused"],
    ["/jobs?status=PAUSED"],
    ["/refresh/stale"],
    ["/reconcilers/desk"],
    ["/jobs/filled", "/jobs/filled"],
  ]);
});

const keyOf = (role: string) => answers({ keyless: false, role, name: role, tenant: "default", tenants: [] });

const labels = (): (string | null)[] => screen.queryAllByRole("button").map((button) => button.getAttribute("aria-label"));

/** Draws the lines for a key of that role. */
function drawFor(role: string, found = EVERYTHING): void {
  cleanup();
  network("/api/v1/session", keyOf(role));
  draw(<ul>{needsOf(found)}</ul>);
}

const [LIMITS, QUEUE] = [["Raise limit: narrow", "Raise limit: wide"], "Resume: held"];
const [LETTERS, RERUN, CANCEL, RELEASE] = ["Replay: dying", "Rerun: nightly / load", "Cancel run: hanging 81", "Release: dispatch"];
const LONGEST = "Cancel run: export 83";
const OUT = ["Send test: ops", "Send test: mail", "Resume: billing"];
const [JOB, TICK, DRIFT] = ["Resume: paused", "Run refresh: stale", "Run now: desk"];

test("each cause has the button that fixes it, and a key that may not fix it sees none", async () => {
  await inLanguage("en", "overview");

  drawFor("viewer");
  await waitFor(() => expect(labels()).toEqual([]));
  drawFor("operator");
  await waitFor(() => expect(labels()).toEqual([CANCEL, LONGEST, CANCEL, LETTERS, RERUN, ...OUT, RELEASE, JOB, TICK, DRIFT]));
  drawFor("admin");
  await waitFor(() => expect(labels()).toEqual([...LIMITS, CANCEL, LETTERS, RERUN, ...OUT, RELEASE, QUEUE, JOB, TICK, DRIFT]));
});

test("an action is offered only for a cause that it removes", async () => {
  await inLanguage("en", "overview");
  const [drift] = EVERYTHING.drifts;
  const [blocked] = EVERYTHING.blocked;
  const [backfill] = EVERYTHING.backfills;
  const [hold] = EVERYTHING.holds;
  const others = {
    ...EVERYTHING,
    drifts: [{ ...drift, missing: 0, created: 0, surplus: 20 }],
    blocked: [{ ...blocked, rootCauses: [CAUSE, { ...CAUSE, node: "second" }] }],
    backfills: [{ ...backfill, status: "PAUSED" }],
    holds: [{ ...hold, scope: "platform" }],
  } as AttentionOut;

  drawFor("admin", others);
  await waitFor(() => expect(labels()).toEqual([...LIMITS, CANCEL, LETTERS, ...OUT, QUEUE, JOB, TICK, "Resume: filled"]));
});

test("a pause is told with the instances that it holds up", async () => {
  await inLanguage("en", "overview");
  draw(<ul>{needsOf(EVERYTHING)}</ul>);

  expect(screen.getByText(/^why · /).textContent).toBe("why · 1000+ instances waiting");
  expect(screen.getByText(/queue paused/).textContent).toBe("queue paused · 2 instances waiting");
});

test("a reconciler is listed with what it found, and not with what it did not find", async () => {
  await inLanguage("en", "overview");
  const [drift] = EVERYTHING.drifts;
  const found = { ...drift, missing: 0, created: 0, surplus: 20, faulty: 1 } as (typeof EVERYTHING.drifts)[number];
  draw(<ul>{needsOf({ ...EVERYTHING, drifts: [found] })}</ul>);

  expect(screen.getByText(/20 extra/).textContent).toBe("20 extra · 1 invalid row");
});

test("a hold is named with who holds it, why and until when, and a blocked run with its root cause", async () => {
  await inLanguage("en", "overview");
  draw(<ul>{needsOf(EVERYTHING)}</ul>);

  expect(screen.getByText(/moving house/).textContent).toMatch(/^by key ops · moving house · until /);
  expect(screen.getByText(/load failed, blocking 2 nodes/)).toBeTruthy();
  expect(screen.getByText(/a stuck run holds its only slot, 4 waiting/)).toBeTruthy();
});

const [ONLY_P95, FEW, UNKNOWN] = [
  { p95Ms: 1000, longestMs: null },
  { p95Ms: null, longestMs: 2000 },
  { p95Ms: null, longestMs: null },
];

/** The text of a stuck run. */
async function told(language: "en" | "zh-CN", changes: Partial<StuckCauseOut>): Promise<string | null> {
  await inLanguage(language, "overview");
  cleanup();
  draw(<ul>{needsOf({ ...EVERYTHING, clogged: [], full: [], stuck: [{ ...RUN, waiting: 0, blocks: 0, ...changes }] })}</ul>);
  return screen.getByRole("link", { name: /81/ }).textContent;
}

test("a stuck run is told with what is known of its usual duration, and with what waits behind it", async () => {
  expect(await told("en", { ...ONLY_P95, waiting: 20 })).toMatch(/three times as long as usual; 95 % of runs end within .* · queue narrow · 20 instances wait behind it$/);
  expect(await told("en", { ...FEW, waiting: 1, blocks: 2 })).toMatch(/the longest of few known successes took .* · queue narrow · 1 instance waits behind it · blocks 2 nodes$/);
  expect(await told("en", UNKNOWN)).toBe("instance 81 has run for over 30 minutes; no usual duration is known · queue narrow");
  expect(await told("zh-CN", { ...UNKNOWN, waiting: 20, blocks: 1 })).toBe("实例 81 已运行超过 30 分钟；通常耗时未知 · 队列 narrow · 有 20 个实例在其后等待 · 阻塞 1 个节点");
});

test("a full queue is told with the number that waits and the runs that hold its slots", async () => {
  const holders = / export 83 .*, export 84 /;
  for (const [language, words] of [["en", /^full: all 2 slots are in use, 20 waiting · held by/], ["zh-CN", /^已满：全部 2 个槽位正被占用，20 个等待中 · 占用者/]] as const) {
    await inLanguage(language, "overview");
    cleanup();
    draw(<ul>{needsOf(EVERYTHING)}</ul>);
    expect(screen.getByText(words).textContent).toMatch(holders);
  }
  await inLanguage("en", "overview");
  cleanup();
  draw(<ul>{needsOf({ ...EVERYTHING, full: [{ name: "wide", slots: 2, since: AT, waiting: 20, holders: [] }] })}</ul>);
  expect(screen.getByText(/^full: all 2 slots are in use, 20 waiting · held by calls of ended instances/)).toBeTruthy();
});

test("what holds up others is never folded, however much else there is", async () => {
  await inLanguage("en", "overview");
  const many = Array.from({ length: 8 }, (_, number) => number);
  const busy = {
    ...EVERYTHING,
    dying: many.map((number) => ({ ...EVERYTHING.dying[0], job: `dying-${number}`, jobId: `${number}` })),
    stuck: many.map((number) => ({ ...RUN, id: `${100 + number}`, waiting: 4, blocks: 0 })),
  } as AttentionOut;
  network("/api/v1/scheduler/attention", answers(busy));
  draw(<Attention />);

  await waitFor(() => expect(screen.getAllByRole("listitem").length).toBe(10));
  expect(screen.getByText(/instance 107/)).toBeTruthy();
  expect(screen.queryByText("dying-0")).toBeNull();
  expect(screen.getByRole("button", { name: /more$/ })).toBeTruthy();
});

const TROUBLE = [
  ["en", /takes no messages \(HTTP 503\): horai alerts test ops/, /last message \(no answer\): horai alerts test mail/, /parked \(HTTP 500\): horai sinks show billing/, /last backup failed \(The disk is full\.\)/],
  ["zh-CN", /无法送达（HTTP 503）：horai alerts test ops/, /未能送达（no answer）：horai alerts test mail/, /已搁置（HTTP 500）：horai sinks show billing/, /最近一次备份失败（The disk is full\.）/],
] as const;

test("channels that fail and parked sinks are named with the error and a command, in both languages", async () => {
  for (const [language, ...texts] of TROUBLE) {
    await inLanguage(language, "overview");
    draw(<ul>{needsOf(EVERYTHING)}</ul>);

    for (const text of texts) expect(screen.getByText(text)).toBeTruthy();
    cleanup();
  }
});

test("where nothing needs anybody there is no line", () => {
  const none = { count: 0, more: false, examples: [] };
  const nothing = {
    dying: [], failing: [], lostNodes: [], pausedQueues: [], backfills: [], drifts: [], staleRefreshes: [],
    modes: [], holds: [], stuck: [], clogged: [], full: [], blocked: [], failingChannels: [], parkedSinks: [], failingBackups: [],
  };
  expect(needsOf({ ...nothing, late: none, pausedJobs: none, computedAt: AT })).toEqual([]);
});
