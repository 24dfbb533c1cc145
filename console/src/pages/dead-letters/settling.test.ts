import { expect, test } from "vitest";
import type { Tally } from "@/parts";
import { answers, network } from "@/testing/server";
import { discarding, onlyOf, replaying } from "./settling";

async function all(work: AsyncIterable<Tally>): Promise<Tally[]> {
  const gathered: Tally[] = [];
  for await (const reached of work) gathered.push(reached);
  return gathered;
}

const replayed = (matched: number, more: boolean) => answers({ matched, replayed: matched - 1, superseded: 1, held: 0, more, dryRun: false });
const discarded = (number: number) => answers({ matched: number, discarded: number, more: true, dryRun: false });

test("letters are replayed portion by portion, and not more than are wished for", async () => {
  const calls = network("/api/v1/dlq/replay", replayed(250, true), replayed(50, true));

  expect(await all(replaying({ job: "mail", limit: 300 }))).toEqual([{ done: 249, left: 1, skipped: { needless: 1 } }, { done: 298, left: 2, skipped: { needless: 2 } }]);
  expect(calls.map((call) => call.body)).toEqual([{ job: "mail", limit: 250 }, { job: "mail", limit: 50 }]);
});

test("a rate is kept by one request for all", async () => {
  const calls = network("/api/v1/dlq/replay", replayed(300, true));

  await all(replaying({ job: "mail", limit: 300, rate: "5/s" }));

  expect(calls.map((call) => call.body)).toEqual([{ job: "mail", limit: 300, rate: "5/s" }]);
});

test("letters are discarded with their reason until none is left that may be", async () => {
  const calls = network("/api/v1/dlq/discard", discarded(250), discarded(3), discarded(0));

  expect((await all(discarding({ tag: "t" }, "closed"))).at(-1)).toEqual({ done: 253, left: 0 });
  expect(calls[0]?.body).toEqual({ tag: "t", reason: "closed", limit: 250 });
});

test("letters that were selected are named, and no more than a request may name", async () => {
  const calls = network("/api/v1/dlq/discard", discarded(2), discarded(0));
  const ids = Array.from({ length: 600 }, (_, number) => String(number));

  await all(discarding(onlyOf({ ids: ["7", "9"] }), "closed"));

  expect(calls[0]?.body).toEqual({ ids: ["7", "9"], reason: "closed", limit: 250 });
  expect(onlyOf({ ids }).ids).toHaveLength(500);
  expect(onlyOf({ filters: { job: "mail", status: "all", at: "2026-01-01T00:00:00Z" } })).toEqual({ job: "mail" });
});
