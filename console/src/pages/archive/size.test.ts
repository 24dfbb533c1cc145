import { expect, test } from "vitest";
import { sizeOf } from "./size";

test("a size is said in the largest unit that leaves at least 1", () => {
  expect([0, 999, 1_000, 1_234_567, 2e15].map((bytes) => sizeOf(bytes, "en"))).toEqual(["0 byte", "999 byte", "1 kB", "1.23 MB", "2,000 TB"]);
});
