import { wordsOf } from "@/i18n/said";
import { ProblemError } from "./request";

/** What the server says about each field of a form, in the language of the page: `errors[].field` → message. */
export function fieldErrors(error: unknown): Record<string, string> {
  if (!(error instanceof ProblemError)) {
    return {};
  }
  return Object.fromEntries((error.problem.errors ?? []).map((fault) => [fault.field, wordsOf(fault.message, fault.messageSaid)]));
}

/** What an error says, in the language of the page as far as the server's words are known in it. */
export function detailOf(error: unknown): string {
  if (error instanceof ProblemError) return wordsOf(error.problem.detail, error.problem.detailSaid);
  return error instanceof Error ? error.message : String(error);
}

/** Whether every fault has a field of the form to stand at; otherwise the whole problem has to be shown. */
export function areAllShown(error: unknown, fields: readonly string[]): boolean {
  const named = Object.keys(fieldErrors(error));
  return named.length > 0 && named.every((field) => fields.includes(field));
}
