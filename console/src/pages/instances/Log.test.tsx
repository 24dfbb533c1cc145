import { fireEvent, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { draw, inLanguage } from "@/testing/render";
import { Log } from "./Log";
import { linesWith, logText } from "./logLines";

const LINES = [
  { at: "2026-11-18T09:00:00Z", level: "WARNING" as const, progress: null, message: "Connecting to the ledger" },
  { at: "2026-11-18T09:00:01Z", level: "INFO" as const, progress: 0.5, message: "half done" },
];

test("a log is searched, and copied as it is shown", async () => {
  await inLanguage("en", "instances");
  draw(<Log lines={LINES} name="7-1" />);
  screen.getByText("2 of 2 lines");
  fireEvent.change(screen.getByLabelText("Search the log"), { target: { value: "LEDGER" } });

  screen.getByText("1 of 2 lines");
  expect(screen.getAllByRole("listitem").map((line) => line.textContent)).toEqual([expect.stringContaining("Connecting to the ledger")]);
  expect(logText(LINES)).toBe("2026-11-18T09:00:00Z\t\tWARNING\tConnecting to the ledger\n2026-11-18T09:00:01Z\t50 %\tINFO\thalf done");
});

test("lines of a log are wrapped unless that is switched off, and the log can be enlarged", async () => {
  await inLanguage("en", "instances");
  draw(<Log lines={LINES} name="7-1" />);
  const list = screen.getByRole("list", { name: "Log" });
  expect(list.dataset["wrapped"]).toBe("true");
  fireEvent.click(screen.getByLabelText("Wrap lines"));
  fireEvent.click(screen.getByRole("button", { name: "Enlarge" }));
  expect([list.dataset["wrapped"], list.dataset["large"]]).toEqual([undefined, "true"]);
});

test("a log is filtered by the least severe level that is shown, together with the search", () => {
  expect(linesWith(LINES, "", "INFO")).toHaveLength(2);
  expect(linesWith(LINES, "", "WARNING").map((line) => line.message)).toEqual(["Connecting to the ledger"]);
  expect(linesWith(LINES, "half", "WARNING")).toEqual([]);
  expect(linesWith(LINES, "", "ERROR")).toEqual([]);
});
