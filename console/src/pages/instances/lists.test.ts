import { expect, test } from "vitest";
import type { InstanceOut } from "@/api";
import { answers, network } from "@/testing/server";
import { cancelMatching } from "./cancelling";
import { csvOf } from "@/parts/files";
import { COLUMNS } from "./Download";
import { isNarrow, liveIn, paramsOf, sweepOf } from "./filters";

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const gathered: Item[] = [];
  for await (const item of items) gathered.push(item);
  return gathered;
}

const portion = (cancelled: number, more: boolean) => answers({ matched: cancelled, cancelled, held: 1, more, dryRun: false });

test("a key in the address is how a key begins", () => {
  expect(paramsOf({ job: "mail", key: "order:" })).toEqual({ job: "mail", keyPrefix: "order:" });
  expect(isNarrow({})).toBe(false);
});

test("only what lives is cancelled, and what runs only when that is wanted", () => {
  expect(sweepOf({ job: "mail" }, false)).toEqual({ job: "mail", state: "BLOCKED,INIT,FAIL" });
  expect(sweepOf({ state: "INIT,RUNNING,DEAD" }, true)).toEqual({ state: "INIT,RUNNING" });
  expect(liveIn({ state: "SUCCESS,DEAD" })).toEqual([]);
});

test("a table for a spreadsheet quotes what it must and holds no formula", () => {
  const row = { id: "7", job: "mail", key: "=HYPERLINK(1)", state: "DEAD", errorMsg: 'said "no",\nthen left' } as InstanceOut;

  const [head, ...lines] = csvOf([row], COLUMNS).split("\r\n");

  expect(head).toMatch(/^id,job,key,state/);
  expect(lines.join("\r\n")).toContain(`7,mail,'=HYPERLINK(1),DEAD,`);
  expect(lines.join("\r\n")).toContain(`"said ""no"",\nthen left"`);
});

test("all that match are cancelled portion by portion until nothing is left", async () => {
  const calls = network("/api/v1/instances/cancel", portion(500, true), portion(20, false));

  const reached = await all(cancelMatching({ job: "mail" }));

  expect(reached).toEqual([{ done: 500, left: 1 }, { done: 520, left: 1 }]);
  expect(calls.map((call) => call.body)).toEqual([{ job: "mail", limit: 500 }, { job: "mail", limit: 500 }]);
});

test("a sweep ends when everything that is left is held", async () => {
  network("/api/v1/instances/cancel", answers({ matched: 3, cancelled: 0, held: 3, more: true, dryRun: false }));

  expect(await all(cancelMatching({ job: "mail" }))).toEqual([{ done: 0, left: 3 }]);
});
