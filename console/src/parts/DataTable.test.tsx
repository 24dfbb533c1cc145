import { act, fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { draw } from "@/testing/render";
import { type Column, sorted } from "./columns";
import { DataTable } from "./DataTable";

interface Row {
  id: string;
  size: number | null;
}

const PAGE = 100;
const drawn = new Map<string, number>();
const columns: Column<Row>[] = [
  {
    id: "id",
    header: "Id",
    cell: (row) => {
      drawn.set(row.id, (drawn.get(row.id) ?? 0) + 1);
      return row.id;
    },
  },
];

beforeEach(() => {
  drawn.clear();
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(600);
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(900);
});
afterEach(() => vi.restoreAllMocks());

test("100,000 rows: only those in sight are drawn, each once, and pages come by their cursors", async () => {
  const asked: (string | undefined)[] = [];
  const fetchPage = async (cursor: string | undefined) => {
    asked.push(cursor);
    const from = Number(cursor ?? 0);
    return { items: Array.from({ length: PAGE }, (_, place) => ({ id: `row ${from + place}`, size: null })), nextCursor: from + PAGE < 100_000 ? String(from + PAGE) : null };
  };
  const { container } = draw(<DataTable label="rows" queryKey={["rows"]} fetchPage={fetchPage} columns={columns} idOf={(row) => row.id} empty="none" />);
  await screen.findByText("row 0");
  const scroller = [...container.querySelectorAll("div")].find((each) => each.className.includes("scroller"))!;

  for (let screenful = 1; screenful <= 40; screenful += 1) {
    await act(async () => {
      scroller.scrollTop = screenful * 400;
      fireEvent.scroll(scroller);
      await Promise.resolve();
    });
    await waitFor(() => screen.getByText(`row ${Math.floor((screenful * 400) / 44)}`));
    expect(screen.getAllByRole("row").length).toBeLessThan(60);
  }

  expect(asked.slice(0, 4)).toEqual([undefined, "100", "200", "300"]);
  expect(asked.length).toBeLessThan(8);
  expect(drawn.size).toBeLessThan(450);
  expect(Math.max(...drawn.values())).toBeLessThanOrEqual(2);
});

test("a list that is loaded to its end is sorted by a column, what has no value last", () => {
  const bySize: Column<Row>[] = [{ id: "size", header: "Size", cell: (row) => row.size, sortBy: (row) => row.size }];
  const rows = [{ id: "a", size: 2 }, { id: "b", size: null }, { id: "c", size: 10 }];

  expect(sorted(rows, bySize, { id: "size", isUp: true }).map((row) => row.id)).toEqual(["a", "c", "b"]);
  expect(sorted(rows, bySize, { id: "size", isUp: false }).map((row) => row.id)).toEqual(["c", "a", "b"]);
  expect(sorted(rows, bySize, null)).toBe(rows);
});
