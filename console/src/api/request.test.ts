import { expect, test } from "vitest";
import { getGetInstancesUrl } from "@/api";

test("what is not asked for is not in the address, and nothing can be asked for as null", () => {
  expect(getGetInstancesUrl({ job: "mail", limit: 100 })).toBe("/api/v1/instances?job=mail&limit=100");
  expect(getGetInstancesUrl({ key: "null" })).toBe("/api/v1/instances?key=null");
  // @ts-expect-error: it would be written as the text "null", and look for that.
  getGetInstancesUrl({ job: null });
});
