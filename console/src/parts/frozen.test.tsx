import { act, fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { draw, inLanguage } from "@/testing/render";
import type { Column } from "./columns";
import { DataTable } from "./DataTable";
import { Elapsed } from "./Duration";
import { frozenList } from "./frozen";

interface Row {
  id: string;
  state: string;
}

const rowsOf = (...ids: string[]): Row[] => ids.map((id) => ({ id, state: "RUNNING" }));
const idOf = (row: Row): string => row.id;
const columns: Column<Row>[] = [{ id: "id", header: "Id", cell: (row) => `${row.id} ${row.state}` }];

beforeEach(async () => {
  await inLanguage("en");
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(600);
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(900);
});
afterEach(() => vi.restoreAllMocks());

test("a frozen list keeps its places, counts what is new, and adds what is behind its last row", () => {
  const told = frozenList(rowsOf("c", "b", "a"), rowsOf("e", "d", "c", "a", "z"), idOf, false);

  expect(told.rows.map(idOf)).toEqual(["c", "b", "a", "z"]);
  expect([told.fresh, told.isMore, [...told.gone]]).toEqual([2, false, ["b"]]);
});

test("a row that new ones have pushed out of what is loaded has not left the list", () => {
  expect([...frozenList(rowsOf("c", "b", "a"), rowsOf("d", "c", "b"), idOf, false).gone]).toEqual([]);
  expect([...frozenList(rowsOf("c", "b", "a"), rowsOf("d", "c", "b"), idOf, true).gone]).toEqual(["a"]);
  expect(frozenList(rowsOf("b", "a"), rowsOf("e", "d"), idOf, false)).toMatchObject({ fresh: 2, isMore: true });
});

const shownRows = () => screen.getAllByRole("row").slice(1).map((row) => row.textContent);
const shownLengths = () => screen.getByTestId("lengths").textContent;

/** A table whose server has other rows each time it is asked. */
async function drawTable(chosen: ReadonlySet<string> = new Set()) {
  const server = { rows: rowsOf("b", "a") };
  const fetchPage = async () => ({ items: server.rows, nextCursor: null });
  const drawn = draw(
    <DataTable label="rows" queryKey={["rows"]} fetchPage={fetchPage} columns={columns} idOf={idOf} empty="none" selection={{ chosen, onChange: () => undefined }} />,
  );
  await screen.findByText("b RUNNING");
  const frame = screen.getByRole("grid").parentElement!.parentElement!;
  const refresh = async (rows: Row[] = [...rowsOf("d", "c"), { id: "b", state: "SUCCESS" }, ...rowsOf("a")]) => {
    server.rows = rows;
    await act(() => drawn.queries.invalidateQueries({ queryKey: ["rows"] }));
  };
  const change = () => act(() => drawn.queries.getMutationCache().build(drawn.queries, { mutationFn: async () => null }).execute(undefined));
  return { frame, shown: shownRows, refresh, change };
}

test("rows stay under the pointer, with their new values, and the list goes on when the pointer leaves", async () => {
  const { frame, shown, refresh } = await drawTable();
  fireEvent.pointerEnter(frame);
  await refresh();

  await screen.findByRole("button", { name: "2 new: show" });
  expect(shown()).toEqual(["b SUCCESS", "a RUNNING"]);

  fireEvent.pointerLeave(frame);
  await waitFor(() => expect(shown()).toEqual(["d RUNNING", "c RUNNING", "b SUCCESS", "a RUNNING"]));
});

test("a row that the operator deletes goes, also under the pointer, and the next change keeps its place again", async () => {
  const { frame, shown, refresh, change } = await drawTable();
  fireEvent.pointerEnter(frame);
  await change();
  await refresh(rowsOf("a"));
  await waitFor(() => expect(shown()).toEqual(["a RUNNING"]));

  await refresh();
  await screen.findByRole("button", { name: "3 new: show" });
  expect(shown()).toEqual(["a RUNNING"]);
});

test("rows stay while some are selected, and a button shows the newest", async () => {
  const { shown, refresh } = await drawTable(new Set(["a"]));
  await refresh();
  const newest = await screen.findByRole("button", { name: "2 new: show" });
  expect(shown()).toEqual(["b SUCCESS", "a RUNNING"]);

  fireEvent.click(newest);
  await waitFor(() => expect(shown()).toHaveLength(4));
});

test("live updates can be paused and resumed", async () => {
  const { shown, refresh, change } = await drawTable();
  fireEvent.click(screen.getByRole("button", { name: "Pause live updates" }));
  await change();
  await refresh();
  await screen.findByRole("button", { name: "2 new: show" });
  expect(shown()).toEqual(["b SUCCESS", "a RUNNING"]);

  fireEvent.click(screen.getByRole("button", { name: "Resume live updates" }));
  await waitFor(() => expect(shown()).toHaveLength(4));
});

test("the duration of a running instance counts, and that of another does not", () => {
  vi.useFakeTimers({ now: Date.parse("2026-11-18T09:00:00Z") });
  try {
    draw(
      <p data-testid="lengths">
        <Elapsed from="2026-11-18T08:59:30Z" to={null} isRunning />
        <Elapsed from="2026-11-18T08:59:30Z" to={null} isRunning={false} />
      </p>,
    );
    act(() => vi.advanceTimersByTime(1_000));
    const before = shownLengths();
    act(() => vi.advanceTimersByTime(60_000));
    expect([before, shownLengths()]).toEqual(["31 s–", "1 m 31 s–"]);
  } finally {
    vi.useRealTimers();
  }
});
