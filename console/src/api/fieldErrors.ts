import { ProblemError } from "./request";

/** What the server says about each field of a form: `errors[].field` → message. */
export function fieldErrors(error: unknown): Record<string, string> {
  if (!(error instanceof ProblemError)) {
    return {};
  }
  return Object.fromEntries((error.problem.errors ?? []).map((fault) => [fault.field, fault.message]));
}

/** Whether every fault has a field of the form to stand at; otherwise the whole problem has to be shown. */
export function areAllShown(error: unknown, fields: readonly string[]): boolean {
  const named = Object.keys(fieldErrors(error));
  return named.length > 0 && named.every((field) => fields.includes(field));
}
