import { expect, test } from "vitest";
import { percentOf } from "./freshness";
import { readEntities } from "./reading";

test("a CSV has a column of keys, and the others are the payload", () => {
  expect(readEntities("\uFEFFkey,shelf\r\nsku-1,7\r\n\r\nsku-2,\r\n")).toEqual({
    items: [
      { key: "sku-1", payload: { shelf: "7" } },
      { key: "sku-2", payload: { shelf: "" } },
    ],
    faults: [],
  });
  expect(readEntities("key\na\nb")).toEqual({ items: [{ key: "a" }, { key: "b" }], faults: [] });
});

test("a quoted cell may hold commas, line ends and quotes", () => {
  const { items } = readEntities('name,key\n"a ""b"", c\nd",k1\nx,"k,2"');
  expect(items).toEqual([
    { key: "k1", payload: { name: 'a "b", c\nd' } },
    { key: "k,2", payload: { name: "x" } },
  ]);
});

test("lines of JSON have a key and perhaps a payload; what they have not is said with its line", () => {
  expect(readEntities('{"key": "a", "payload": [1]}\n\n{"key": 7}\nnonsense\n{"key": "b"}')).toEqual({
    items: [{ key: "a", payload: [1] }, { key: "b" }],
    faults: [
      { line: 3, why: "noKey" },
      { line: 4, why: "notJson" },
    ],
  });
});

test("a CSV without a column of keys, and a row without a key, are faults", () => {
  expect(readEntities("sku,shelf\n1,2")).toEqual({ items: [], faults: [{ line: 1, why: "noKeyColumn" }] });
  expect(readEntities("key,shelf\n,2").faults).toEqual([{ line: 2, why: "noKey" }]);
  expect(readEntities("")).toEqual({ items: [], faults: [] });
});

test("what is not quite everything never reads as everything", () => {
  expect([0, 0.9999, 1, 0.123].map(percentOf)).toEqual(["0 %", "99.9 %", "100 %", "12.3 %"]);
});
