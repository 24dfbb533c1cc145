import type { FieldChangeOut } from "@/api";

/** What an answer says about the object, and not about its definition. */
const BESIDE = new Set(["id", "jobId", "runJobId", "version", "createdAt", "updatedAt", "nextFire", "lastRun", "lastReport", "payloadSize", "waiting", "running", "clogged"]);

/** The fields in which two answers about an object differ, without those that no form changes. */
export function between(before: object, after: object): FieldChangeOut[] {
  const old = before as Record<string, unknown>;
  const now = after as Record<string, unknown>;
  const names = [...new Set([...Object.keys(now), ...Object.keys(old)])].filter((name) => !BESIDE.has(name));
  return names
    .filter((name) => JSON.stringify(old[name] ?? null) !== JSON.stringify(now[name] ?? null))
    .map((field) => ({ field, before: old[field] ?? null, after: now[field] ?? null }));
}
