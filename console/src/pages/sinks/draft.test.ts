import { expect, test } from "vitest";
import type { SinkOut } from "@/api";
import { bodyOf, draftOf, headersIn, placeOf } from "./draft";

const SINK: SinkOut = {
  name: "monitoring",
  kind: "webhook",
  url: "https://example.com/events?token=***",
  headers: { Authorization: "***" },
  broker: null,
  subject: null,
  topic: null,
  types: ["horai.instance.dead"],
  batch: 100,
  status: "ACTIVE",
  delivered: 0,
  deliveredAt: null,
  behind: 0,
  lagSeconds: 0,
  failures: 0,
  failingSince: null,
  lastError: null,
  nextTry: null,
  version: 1,
  createdAt: "2026-11-17T00:00:00Z",
  updatedAt: "2026-11-17T00:00:00Z",
};

test("a sink that is opened and saved keeps its fields, hidden values as they were shown", () => {
  expect(bodyOf(draftOf(SINK))).toEqual({
    kind: "webhook",
    url: "https://example.com/events?token=***",
    headers: { Authorization: "***" },
    batch: 100,
    types: ["horai.instance.dead"],
  });
});

test("a sink of another kind sends the fields of that kind only", () => {
  expect(bodyOf({ ...draftOf(SINK), kind: "nats", broker: "main", subject: "events", types: [] })).toEqual({ kind: "nats", broker: "main", subject: "events" });
  expect(bodyOf({ ...draftOf(SINK), kind: "log", types: [] })).toEqual({ kind: "log" });
});

test("headers are lines, and a value may have colons", () => {
  expect(headersIn("X-Url: http://a:80/\n\n Authorization:Bearer x ")).toEqual({ "X-Url": "http://a:80/", Authorization: "Bearer x" });
  expect(headersIn(" \n")).toBeNull();
  expect(headersIn("Broken")).toEqual({ Broken: "" });
});

test("the place is the URL, or the broker with its subject or topic", () => {
  expect(placeOf(SINK)).toBe("https://example.com/events?token=***");
  expect(placeOf({ ...SINK, url: null, broker: "main", topic: "events" })).toBe("main · events");
});
