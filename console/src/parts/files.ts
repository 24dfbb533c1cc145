import type { Tally } from "./useWork";

/** A file has at most so many rows; more are for the API itself. */
export const MOST_ROWS = 10_000;

interface Page<Row> {
  items: readonly Row[];
  nextCursor: string | null;
}

/** Gathers what a list has, page by page, into `rows`. */
export async function* gather<Row>(fetchPage: (cursor: string | undefined) => Promise<Page<Row>>, rows: Row[]): AsyncGenerator<Tally> {
  let cursor: string | undefined;
  do {
    const page: Page<Row> = await fetchPage(cursor);
    rows.push(...page.items.slice(0, MOST_ROWS - rows.length));
    cursor = page.nextCursor ?? undefined;
    yield { done: rows.length, left: 0 };
  } while (cursor !== undefined && rows.length < MOST_ROWS);
}

/** RFC 4180, with the names of the columns first. */
export function csvOf<Row extends object>(rows: readonly Row[], columns: readonly (keyof Row & string)[]): string {
  const lines = rows.map((row) => columns.map((column) => cell(row[column])).join(","));
  return [columns.join(","), ...lines, ""].join("\r\n");
}

/** What a spreadsheet would take for a formula gets a quote before it: keys and messages come from anywhere. */
function cell(value: unknown): string {
  const text = textOf(value);
  const tame = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(tame) ? `"${tame.replaceAll('"', '""')}"` : tame;
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.join(" ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
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
