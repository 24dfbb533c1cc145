import { expect, test } from "vitest";
import type { InstanceOut } from "@/api";
import { csvOf } from "@/parts/files";
import { answers, network } from "@/testing/server";
import { cancelsOf, countedBy, isNarrow, isUpwards, liveIn, paramsOf, replaysOf, viewOf } from "./filters";
import { canBeRated, countOf, sweep, wishesOf } from "./sweeping";

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const gathered: Item[] = [];
  for await (const item of items) gathered.push(item);
  return gathered;
}

const cancelled = (number: number, more: boolean, held = 1) => answers({ matched: number, cancelled: number, held, more, dryRun: false });
const replayed = (number: number, nextCursor: string | null) =>
  answers({ matched: number, replayed: number, superseded: 1, held: 0, nextCursor, dryRun: false });

test("a key in the address is how a key begins", () => {
  expect(paramsOf({ job: "mail", key: "order:" })).toEqual({ job: "mail", keyPrefix: "order:" });
  expect(isNarrow({})).toBe(false);
});

test("without a wish one sees what has happened, and a link finds what it asks for whenever that is", () => {
  expect(paramsOf({})).toEqual({ when: "happened" });
  expect(viewOf({ state: "INIT" })).toBe("all");
  expect(paramsOf({ state: "INIT", when: "planned" })).toEqual({ state: "INIT", when: "planned", order: "oldest" });
  expect(isNarrow({ when: "planned", order: "oldest" })).toBe(false);
  expect(isUpwards({ when: "planned", order: "newest" })).toBe(false);
});

test("a list that begins at a time counts, cancels and replays all that match", () => {
  const filters = { job: "mail", at: "2026-11-15T09:00:00Z", order: "oldest" };
  expect(paramsOf(filters)).toEqual({ job: "mail", at: "2026-11-15T09:00:00Z", order: "oldest" });
  expect(countedBy(filters)).toEqual({ job: "mail" });
  expect(cancelsOf(filters, false)).toEqual({ job: "mail", state: "BLOCKED,INIT,FAIL" });
  expect(replaysOf(filters)).toEqual({ job: "mail", state: "DEAD" });
  expect(isNarrow({ at: "2026-11-15T09:00:00Z" })).toBe(false);
});

test("only what lives is cancelled, what runs only when that is wanted, and only what is shown", () => {
  expect(cancelsOf({ job: "mail" }, false)).toEqual({ job: "mail", state: "BLOCKED,INIT,FAIL" });
  expect(cancelsOf({ state: "INIT,RUNNING,DEAD" }, true)).toEqual({ state: "INIT,RUNNING" });
  expect(cancelsOf({ job: "mail", when: "planned", order: "oldest" }, false)).toEqual({ job: "mail", state: "BLOCKED,INIT,FAIL", when: "planned" });
  expect(replaysOf({ job: "mail", state: "DEAD,SUCCESS" })).toEqual({ job: "mail", state: "DEAD" });
  expect(liveIn({ state: "SUCCESS,DEAD" })).toEqual([]);
});

test("a table for a spreadsheet quotes what it must and holds no formula", () => {
  const row = { id: "7", job: "mail", key: "=HYPERLINK(1)", state: "DEAD", payload: { a: 1 }, errorMsg: 'said "no",\nthen left' } as unknown as InstanceOut;

  const [head, ...lines] = csvOf([row], ["id", "job", "key", "state", "payload", "errorMsg"]).split("\r\n");

  expect(head).toBe("id,job,key,state,payload,errorMsg");
  expect(lines.join("\r\n")).toBe(`7,mail,'=HYPERLINK(1),DEAD,"{""a"":1}","said ""no"",\nthen left"\r\n`);
});

test("all that match are cancelled portion by portion until nothing is left", async () => {
  const calls = network("/api/v1/instances/cancel", cancelled(500, true), cancelled(20, false));

  const reached = await all(sweep({ verb: "cancel", filters: { job: "mail", state: "INIT" } }, false));

  expect(reached).toEqual([{ done: 500, left: 1, skipped: { held: 1 } }, { done: 520, left: 1, skipped: { held: 1 } }]);
  const body = { job: "mail", state: "INIT", limit: 500 };
  expect(calls.map((call) => call.body)).toEqual([body, body]);
});

test("a sweep ends when everything that is left is held", async () => {
  network("/api/v1/instances/cancel", answers({ matched: 3, cancelled: 0, held: 3, more: true, dryRun: false }));

  expect(await all(sweep({ verb: "cancel", filters: { job: "mail" } }, false))).toEqual([{ done: 0, left: 3, skipped: { held: 3 } }]);
});

test("a replay goes on behind what it has replayed", async () => {
  const calls = network("/api/v1/instances/replay", replayed(500, "next"), replayed(7, null));

  expect(await all(sweep({ verb: "replay", filters: { job: "mail" } }, false))).toMatchObject([{ done: 500, left: 1 }, { done: 507, left: 2 }]);
  expect(calls.map((call) => call.body)).toEqual([
    { job: "mail", state: "DEAD", limit: 500 },
    { job: "mail", state: "DEAD", limit: 500, cursor: "next" },
  ]);
});

test("a replay at a rate is one request, which spreads the starts", async () => {
  const calls = network("/api/v1/instances/replay", replayed(7, "next"));

  expect(await all(sweep({ verb: "replay", filters: { job: "mail" } }, false, "10/s"))).toMatchObject([{ done: 7, left: 1 }]);
  expect(calls.map((call) => call.body)).toEqual([{ job: "mail", state: "DEAD", limit: 10_000, rate: "10/s" }]);
  expect([500, 501].map((length) => canBeRated({ verb: "replay", ids: Array.from({ length }, String) }))).toEqual([true, false]);
});

test("chosen ones are counted and done on the server, a hundred at a time", async () => {
  const ids = Array.from({ length: 150 }, (_, place) => String(place));
  const calls = network("/api/v1/instances/cancel", cancelled(150, false), cancelled(100, false, 0), cancelled(40, false, 2));
  const many = { verb: "cancel", ids } as const;

  expect(await countOf(many, false, new AbortController().signal)).toEqual({ matched: 150, more: false });
  expect(await all(sweep(many, false))).toEqual([{ done: 100, left: 0 }, { done: 140, left: 10, skipped: { held: 2, finished: 8 } }]);
  expect(calls.map((call) => (call.body as { ids: string[] }).ids.length)).toEqual([150, 100, 50]);
  expect(wishesOf(many, false)[0]?.state).toBe("BLOCKED,INIT,RUNNING,FAIL");
});
