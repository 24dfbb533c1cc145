import { act, cleanup, fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { draw, inLanguage } from "@/testing/render";
import { answers, network } from "@/testing/server";
import { chosenIn, type ColumnChoice, toggledIn } from "./columnChoice";
import type { Column } from "./columns";
import { ListTools } from "./ListTools";
import { TableFoot } from "./TableFoot";
import { type Counted, totalText } from "./total";
import { MOST_VIEWS, viewsIn, withView } from "./views";

const COLUMNS: readonly Column<object>[] = [
  { id: "state", header: "State", cell: () => "" },
  { id: "job", header: "Job", cell: () => "", isWideOnly: true },
  { id: "queue", header: "Queue", cell: () => "", isOptional: true },
  { id: "act", header: "", cell: () => "", isFixed: true },
];

afterEach(() => localStorage.clear());

test("a choice of columns is what the list has, and none of it is the default", () => {
  expect([...(chosenIn("queue,job,unknown,act", COLUMNS) ?? [])]).toEqual(["queue", "job"]);
  expect([chosenIn("", COLUMNS), chosenIn(null, COLUMNS), chosenIn("unknown", COLUMNS)]).toEqual([null, null, null]);
});

test("a column is added in the order of the list, the default is written as nothing, and the last column stays", () => {
  expect(toggledIn(null, "queue", COLUMNS)).toBe("state,job,queue");
  expect(toggledIn(new Set(["queue", "job", "state"]), "queue", COLUMNS)).toBe(null);
  expect(toggledIn(null, "job", COLUMNS)).toBe("state");
  expect(toggledIn(new Set(["state"]), "state", COLUMNS)).toBe("state");
});

test("views that a browser has kept are read as far as they are views", () => {
  const kept = JSON.stringify([{ name: "dead", search: "?state=DEAD" }, { name: "", search: "" }, { name: "elsewhere", search: "//evil.example" }, null, 7]);

  expect(viewsIn(kept)).toEqual([{ name: "dead", search: "?state=DEAD" }]);
  expect([viewsIn("nonsense"), viewsIn("{}"), viewsIn(null)]).toEqual([[], [], []]);
});

test("a view replaces one of the same name, and views have the order of their names", () => {
  const views = [{ name: "b", search: "?b=1" }];

  expect(withView(views, { name: "a", search: "" }).map(({ name }) => name)).toEqual(["a", "b"]);
  expect(withView(views, { name: "b", search: "?b=2" })).toEqual([{ name: "b", search: "?b=2" }]);
  const many = Array.from({ length: MOST_VIEWS }, (_, number) => ({ name: `${number}`, search: "" }));
  expect(withView(many, { name: "more", search: "" }).length).toBe(MOST_VIEWS);
});

function foot(total: Counted | null, hasMore = true): string {
  const still = { isPending: false, isLoading: false, stillness: null, fresh: 0, isMore: false, isPaused: false } as const;
  draw(<TableFoot count={100} hasMore={hasMore} total={total} {...still} onNewest={() => undefined} onPause={() => undefined} />);
  const text = screen.getByText(/100/).textContent ?? "";
  cleanup();
  return text;
}

test("a total is exact up to its bound, and says so beyond it", async () => {
  await inLanguage("en");

  expect(foot({ count: 12_345, more: false })).toBe("100 of 12,345 loaded");
  expect(foot({ count: 100_000, more: true })).toBe("100 of 100,000+ loaded");
  expect(totalText({ count: 37, more: true }, "zh-CN")).toBe("37+");
  expect([foot(null), foot({ count: 7, more: false })]).toEqual(["100 loaded, more below", "100 loaded, more below"]);
  expect(foot(null, false)).toBe("100 in all");
});

const toggled: string[] = [];
const choice: ColumnChoice<object> = {
  shown: COLUMNS,
  choosable: COLUMNS.filter((column) => !column.isFixed),
  isShown: (id) => id === "state",
  isDefault: true,
  toggle: (id) => toggled.push(id),
  reset: () => undefined,
};

test("the columns of a list are chosen by their names, and the last one cannot be hidden", async () => {
  await inLanguage("en");
  network("/api/v1/session");
  draw(<ListTools list="things" columns={choice} />);

  fireEvent.click(screen.getByRole("button", { name: "Columns" }));
  fireEvent.click(await screen.findByLabelText("Queue"));

  expect(toggled).toEqual(["queue"]);
  expect(screen.getByLabelText<HTMLInputElement>("State").disabled).toBe(true);
  expect(screen.getAllByRole("checkbox").length).toBe(3);
});

test("a view is saved under a name in this browser, and says that it is only there", async () => {
  await inLanguage("en");
  network("/api/v1/session", answers({ keyless: false, role: "viewer", tenant: "north", keyId: "k1", userId: null }));
  const { queries } = draw(<ListTools list="things" columns={choice} />);
  fireEvent.click(screen.getByRole("button", { name: "Views" }));
  await screen.findByText("Views are kept in this browser only. To share one, send its address.");
  await screen.findByText("No saved views yet.");
  await waitFor(() => expect(queries.getQueryData(["session"])).toBeTruthy());
  await act(async () => undefined);

  fireEvent.change(screen.getByLabelText("Name of this view"), { target: { value: " mine " } });
  fireEvent.click(screen.getByRole("button", { name: "Save view" }));
  await screen.findByRole("link", { name: "mine" });

  expect(viewsIn(localStorage.getItem("horai-views:north:k1:things"))).toEqual([{ name: "mine", search: "" }]);
  fireEvent.click(screen.getByRole("button", { name: "Delete view mine" }));
  await screen.findByText("No saved views yet.");
});
