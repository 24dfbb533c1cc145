import { expect, test } from "vitest";
import { parseExactly } from "./exact";

test("an id of 19 digits in a payload is shown and sent as it came", () => {
  const text = '{"order":1234567890123456789,"list":[-9007199254740993],"plain":12,"word":"1234567890123456789"}';

  expect(JSON.stringify(parseExactly(text))).toBe(text);
  expect(parseExactly("[1.5, 9007199254740991]")).toEqual([1.5, 9_007_199_254_740_991]);
});
