import { expect, test } from "vitest";
import type { ChannelOut, RuleOut, SessionOut, SilenceOut } from "@/api";
import * as channels from "./channel";
import * as rules from "./rule";
import * as silences from "./silence";

const RULE: RuleOut = {
  name: "nightly",
  kind: "NOT_SUCCESS_BY",
  channels: ["ops"],
  job: "report",
  tag: null,
  workflow: null,
  queue: null,
  reconciler: null,
  heartbeat: null,
  modes: null,
  by: "06:00",
  timezone: "Asia/Shanghai",
  weekdays: ["MON", "TUE"],
  after: null,
  burnRate: null,
  calendar: null,
  sink: null,
  groupWait: "30s",
  repeatEvery: "4h",
  enabled: false,
  version: 3,
  createdAt: "2026-11-17T00:00:00Z",
  updatedAt: "2026-11-17T00:00:00Z",
};

const MAIL: ChannelOut = {
  name: "mail",
  kind: "email",
  language: "zh-CN",
  url: null,
  secret: null,
  host: "mail.example.com",
  port: 587,
  security: "starttls",
  username: "horai",
  password: "***",
  from: "horai@example.com",
  to: ["ops@example.com"],
  version: 1,
  createdAt: "2026-11-17T00:00:00Z",
  updatedAt: "2026-11-17T00:00:00Z",
};

const session = (role: string | null, keyless = false) => ({ role, keyless }) as unknown as SessionOut;

test("a rule that is opened and saved keeps every field of its kind", () => {
  expect(rules.bodyOf(rules.draftOf(RULE, "INSTANCE_DEAD"))).toEqual({
    kind: "NOT_SUCCESS_BY",
    channels: ["ops"],
    job: "report",
    by: "06:00",
    timezone: "Asia/Shanghai",
    weekdays: ["MON", "TUE"],
    groupWait: "30s",
    repeatEvery: "4h",
    enabled: false,
  });
  expect(rules.watchedBy(RULE)).toBe("job=report by=06:00 timezone=Asia/Shanghai weekdays=MON,TUE");
});

test("a rule that changes its kind sends no field of the old kind, and no empty one", () => {
  const draft = { ...rules.draftOf(RULE, "INSTANCE_DEAD"), kind: "QUEUE_WAIT" as const, queue: "", after: "10m" };
  expect(rules.bodyOf(draft)).toEqual({ kind: "QUEUE_WAIT", channels: ["ops"], after: "10m", groupWait: "30s", repeatEvery: "4h", enabled: false });
});

test("the platform is offered the rules of the cluster, and a tenant all but the error budget", () => {
  expect(rules.kindsFor(session("platform-admin"))).toEqual(["MODE_ENTERED", "BUDGET_BURN", "ARCHIVE_FAILED", "PARTITION_MISSING"]);
  expect(rules.kindsFor(session("admin"))).toEqual(rules.KINDS.filter((kind) => !["BUDGET_BURN", "ARCHIVE_FAILED", "PARTITION_MISSING"].includes(kind)));
  expect(rules.kindsFor(session(null, true))).toEqual(rules.KINDS);
});

test("a channel sends its hidden value back as it was shown, and only the fields of its kind", () => {
  const body = channels.bodyOf(channels.draftOf(MAIL, "en"));
  expect(body).toMatchObject({ kind: "email", language: "zh-CN", host: "mail.example.com", port: 587, password: "***", to: ["ops@example.com"] });
  expect(body).not.toHaveProperty("url");
  const hook: ChannelOut = { ...MAIL, kind: "slack", url: "***", host: "hooks.example.com", port: null, security: null, username: null, password: null, from: null, to: null };
  expect(channels.bodyOf(channels.draftOf(hook, "en"))).toEqual({ kind: "slack", language: "zh-CN", url: "***" });
  expect(channels.placeOf(hook)).toBe("hooks.example.com");
  expect(channels.placeOf(MAIL)).toBe("ops@example.com (mail.example.com:587)");
});

test("a new channel speaks the language of the page", () => {
  expect(channels.draftOf(null, "zh-CN").language).toBe("zh-CN");
  expect(channels.draftOf(null, "en").language).toBe("en");
});

test("a silence has one end, and no field that is empty", () => {
  const draft = { rule: "dead", job: "", tag: " ", startsAt: "", ending: "after" as const, lasts: "2h", endsAt: "2026-11-18T00:00:00Z", note: "ticket 4711" };
  expect(silences.bodyOf(draft)).toEqual({ rule: "dead", lasts: "2h", note: "ticket 4711" });
  expect(silences.bodyOf({ ...draft, ending: "at" })).toEqual({ rule: "dead", endsAt: "2026-11-18T00:00:00Z", note: "ticket 4711" });
  expect(silences.matchedBy({ rule: "dead", job: null, tag: "night" } as SilenceOut)).toBe("rule=dead tag=night");
});
