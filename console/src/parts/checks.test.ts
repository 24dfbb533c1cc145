import { expect, test } from "vitest";
import { faultOf } from "./checks";

test("a name, a rate, a duration, an address and dates are checked as they are typed, and a beginning is no fault", () => {
  expect(["", "nightly-1", "a b", "-a", "17", "报表", "n".repeat(129)].map((text) => faultOf("name", text))).toEqual([null, null, "name", "name", "digits", "name", "name"]);
  expect(["1", "10/", "10/s", "10/day", "soon"].map((text) => faultOf("rate", text))).toEqual([null, null, null, "rate", "rate"]);
  expect(["3", "30s", "1h30m", "1.5h", "soon", "5 years"].map((text) => faultOf("duration", text))).toEqual([null, null, null, null, "duration", "duration"]);
  expect(["htt", "https://a.example/x", "example.com", "https://a b"].map((text) => faultOf("url", text))).toEqual([null, null, "url", "url"]);
  expect(["2026-10", "12-24/01-02 Christmas\n\n2026-10-01", "1 October", "2026.10.01"].map((text) => faultOf("days", text))).toEqual([null, null, "days", "days"]);
});
