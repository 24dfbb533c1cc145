import { getInstances, type InstanceOut } from "@/api";
import type { Tally } from "@/parts";
import { type InstanceFilters, paramsOf } from "./filters";

/** A file has at most so many rows; more are for the API itself. */
export const MOST_ROWS = 10_000;
const PAGE = 500;

const COLUMNS = [
  "id",
  "job",
  "key",
  "state",
  "reason",
  "fireTime",
  "startedAt",
  "finishedAt",
  "attempt",
  "queue",
  "priority",
  "node",
  "errorCode",
  "errorMsg",
] as const satisfies readonly (keyof InstanceOut)[];

/** Gathers the newest that match into `rows`. */
export async function* gather(filters: InstanceFilters, rows: InstanceOut[]): AsyncGenerator<Tally> {
  let cursor: string | null = null;
  do {
    const page = await getInstances({ ...paramsOf(filters), limit: PAGE, ...(cursor && { cursor }) });
    rows.push(...page.items.slice(0, MOST_ROWS - rows.length));
    cursor = page.nextCursor;
    yield { done: rows.length, left: 0 };
  } while (cursor !== null && rows.length < MOST_ROWS);
}

export function csvOf(rows: readonly InstanceOut[]): string {
  const lines = rows.map((row) => COLUMNS.map((column) => cell(row[column])).join(","));
  return [COLUMNS.join(","), ...lines, ""].join("\r\n");
}

/** What a spreadsheet would take for a formula gets a quote before it: keys and messages come from anywhere. */
function cell(value: string | number | null | undefined): string {
  const text = value === null || value === undefined ? "" : String(value);
  const tame = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(tame) ? `"${tame.replaceAll('"', '""')}"` : tame;
}

/** Hands a text to the browser as a file. */
export function save(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
