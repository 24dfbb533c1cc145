import { fireEvent, screen } from "@testing-library/react";
import { useState } from "react";
import { expect, test } from "vitest";
import { draw, inLanguage } from "@/testing/render";
import { ClockInput } from "./ClockInput";
import { readLocal, withLocalTimes } from "./time";

function Field({ from = "" }: { from?: string }) {
  const [at, setAt] = useState(from);
  return (
    <>
      <ClockInput label="at" value={at} onChange={setAt} />
      <output>{at}</output>
    </>
  );
}

test("a time is read as it is shown, as a browser gives it, and without what is zero", () => {
  expect(["2026-11-15 09:00:05", "2026-11-15T09:00", " 2026-1-5 9:00 ", "2026-11-15"].map((typed) => readLocal(typed))).toEqual([
    "2026-11-15T09:00:05",
    "2026-11-15T09:00:00",
    "2026-01-05T09:00:00",
    "2026-11-15T00:00:00",
  ]);
});

test("what no calendar has is no time", () => {
  expect(["", "tomorrow", "2026-02-30 09:00", "2026-11-15 24:30", "15.11.2026"].map((typed) => readLocal(typed))).toEqual([null, null, null, null, null]);
});

test("what is typed stays as it is typed, and what cannot be read is said once it is left", async () => {
  await inLanguage("en", "panels");
  draw(<Field from="2026-11-15T09:00:05" />);
  const input = screen.getByLabelText<HTMLInputElement>("at");
  expect(input.value).toBe("2026-11-15 09:00:05");

  fireEvent.focus(input);
  fireEvent.change(input, { target: { value: "2026-12-1 7:30" } });
  expect(input.value).toBe("2026-12-1 7:30");
  expect(screen.getByRole("status").textContent).toBe("2026-12-01T07:30:00");

  fireEvent.change(input, { target: { value: "2026-12-" } });
  expect(input.getAttribute("aria-invalid")).not.toBe("true");
  fireEvent.blur(input);
  expect(input.getAttribute("aria-invalid")).toBe("true");
  expect(screen.getByRole("status").textContent).toBe("");
});

test("a time of day alone is a time of today, where the day is known", () => {
  expect(readLocal("9:00", "2026-11-15")).toBe("2026-11-15T09:00:00");
  expect(readLocal(" 23:59:30", "2026-11-15")).toBe("2026-11-15T23:59:30");
  expect([readLocal("9:00"), readLocal("25:00", "2026-11-15")]).toEqual([null, null]);
});

test("times in texts of the server are on the clocks of the page, and two that look the same carry their offsets", () => {
  expect(withLocalTimes("It began at 2026-11-15T22:00:04.442392+01:00.", "Asia/Shanghai")).toBe("It began at 2026-11-16 05:00:04.");
  expect(withLocalTimes("2026-10-25T02:30:00+02:00 and 2026-10-25T02:30:00+01:00", "Europe/Berlin")).toBe(
    "2026-10-25 02:30:00 +02:00 and 2026-10-25 02:30:00 +01:00",
  );
});
