import type { EntityItem } from "@/api";

/** What a pasted text holds: entities, and the lines that are none. */
export interface Reading {
  items: EntityItem[];
  faults: { line: number; why: "notJson" | "noKey" | "noKeyColumn" }[];
}

/** CSV with a column `key`, the others being the payload; or a JSON object `{"key", "payload"?}` a line. */
export function readEntities(text: string): Reading {
  const trimmed = text.replace(/^\uFEFF/, "");
  return trimmed.trimStart().startsWith("{") ? readLines(trimmed) : readCsv(trimmed);
}

function readLines(text: string): Reading {
  const reading: Reading = { items: [], faults: [] };
  text.split(/\r?\n/).forEach((line, place) => {
    if (line.trim() === "") return;
    try {
      const { key, payload } = JSON.parse(line) as { key?: unknown; payload?: unknown };
      if (typeof key === "string" && key !== "") reading.items.push({ key, ...(payload !== undefined && { payload }) });
      else reading.faults.push({ line: place + 1, why: "noKey" });
    } catch {
      reading.faults.push({ line: place + 1, why: "notJson" });
    }
  });
  return reading;
}

function readCsv(text: string): Reading {
  const [head = [], ...rows] = rowsOf(text);
  const at = head.findIndex((name) => name.trim() === "key");
  if (at < 0) return { items: [], faults: text.trim() === "" ? [] : [{ line: 1, why: "noKeyColumn" }] };
  const reading: Reading = { items: [], faults: [] };
  rows.forEach((cells, place) => {
    if (cells.length === 1 && cells[0] === "") return;
    const key = cells[at] ?? "";
    const others = head.flatMap((name, column) => (column === at ? [] : [[name.trim(), cells[column] ?? ""] as const]));
    if (key === "") reading.faults.push({ line: place + 2, why: "noKey" });
    else reading.items.push({ key, ...(others.length > 0 && { payload: Object.fromEntries(others) }) });
  });
  return reading;
}

/** The cells of a CSV (RFC 4180): a quoted cell may hold commas, line ends, and quotes written twice. */
function rowsOf(text: string): string[][] {
  const rows: string[][] = [[]];
  const pattern = /("(?:[^"]|"")*"|[^,\r\n]*)(,|\r?\n|$)/gy;
  for (let found = pattern.exec(text); found; found = pattern.exec(text)) {
    const [, cell = "", end] = found;
    rows.at(-1)?.push(cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell);
    if (end === "") break;
    if (end !== ",") rows.push([]);
  }
  return rows;
}
