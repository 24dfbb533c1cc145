import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";

/** The filters of a page, as they stand in its address: a filtered list can be sent to somebody. */
export function useFilters<Name extends string>(
  names: readonly Name[],
): [Partial<Record<Name, string>>, (change: Partial<Record<Name, string | undefined>>) => void] {
  const search = useSearch({ strict: false }) as Record<string, string | undefined>;
  const navigate = useNavigate();
  const filters: Partial<Record<Name, string>> = {};
  for (const name of names) {
    const value = search[name];
    if (value) filters[name] = value;
  }
  const change = useCallback(
    (wanted: Partial<Record<Name, string | undefined>>) => {
      void navigate({
        to: ".",
        replace: true,
        search: (before: Record<string, string>) => withoutEmpty({ ...before, ...wanted }),
      } as never);
    },
    [navigate],
  );
  return [filters, change];
}

/** A dialog that a link opens: `?do=pause`. The link only opens it; the dialog asks. */
export function useLinkedDialog<Name extends string>(names: readonly Name[]): [Name | null, () => void] {
  const [{ do: wanted }, change] = useFilters(LINKED);
  const close = useCallback(() => change({ do: undefined }), [change]);
  return [names.find((name) => name === wanted) ?? null, close];
}

const LINKED = ["do"] as const;

function withoutEmpty(search: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(search).filter((entry): entry is [string, string] => Boolean(entry[1])));
}
