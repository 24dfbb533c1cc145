export { parseExactly } from "./exact";
export { areAllShown, detailOf, fieldErrors, hintOf, messageOf } from "./fieldErrors";
export { ProblemError, Unreachable } from "./request";
export * from "@/generated/api";
export type * from "@/generated/model";
