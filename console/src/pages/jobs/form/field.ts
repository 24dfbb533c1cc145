import type { JobDraft } from "./draft";

/** What every group of fields works on. */
export interface FieldsProps {
  draft: JobDraft;
  onChange: (change: Partial<JobDraft>) => void;
  /** What the server said about each field. */
  errors: Record<string, string>;
  /** A job that is there: its name and its kind of time are settled. */
  isThere?: boolean;
}

/** The first thing that is wrong with a field, or with a part of it. */
export function errorOf(errors: Record<string, string>, ...fields: string[]): string | undefined {
  for (const field of fields) {
    const found = errors[field] ?? Object.entries(errors).find(([name]) => name.startsWith(`${field}.`))?.[1];
    if (found) return found;
  }
  return undefined;
}
