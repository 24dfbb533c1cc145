import i18next from "i18next";
import type { FieldProblem } from "@/generated/model";
import { wordsOf } from "@/i18n/said";
import { ProblemError } from "./request";

/** What the server says about each field of a form, in the language of the page: `errors[].field` → message. */
export function fieldErrors(error: unknown): Record<string, string> {
  if (!(error instanceof ProblemError)) {
    return {};
  }
  return Object.fromEntries((error.problem.errors ?? []).map((fault) => [fault.field, messageOf(fault)]));
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

const UNLIKE = new Set(["NO_MATCH", "PATTERN", "UNLIKE"]);
const NAMES = new Set(["NOT_NAMED_SO", "NO_NAME"]);
const MISSING = new Set(["MISSING", "IS_MISSING"]);

/** What the server says about a field, in words of the page: a pattern is said in plain words. */
export function messageOf(fault: FieldProblem): string {
  const code = fault.messageSaid?.code ?? "";
  if (MISSING.has(code)) return i18next.t("field.required");
  if (NAMES.has(code)) return i18next.t("field.name", { most: fault.messageSaid?.params["most"] });
  return UNLIKE.has(code) ? i18next.t("field.format") : wordsOf(fault.message, fault.messageSaid);
}

/** Words of the API, which help who writes a program, and not who fills in a form. */
const OF_THE_API = /\b(GET|POST|PUT|PATCH|DELETE)\b|\/api\/|"\w+":/;

/** What the server advises, in the language of the page; null where the advice is about requests. */
export function hintOf(error: unknown): string | null {
  if (!(error instanceof ProblemError) || !error.problem.hint) return null;
  return OF_THE_API.test(error.problem.hint) ? null : wordsOf(error.problem.hint, error.problem.hintSaid);
}
