import { useCallback, useState } from "react";
import { useSession } from "@/live";
import { keepText, keptText } from "./storage";

/** The filters, the order, the columns and the start of a list, under a name. */
export interface View {
  name: string;
  /** As in the address: `?state=DEAD&job=mail`, or an empty text. */
  search: string;
}

export const MOST_VIEWS = 50;
export const LONGEST_NAME = 60;

/** The views in a text that the browser has kept; what is none of them is left out. */
export function viewsIn(text: string | null): View[] {
  try {
    const found: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(found) ? found.filter(isView).slice(0, MOST_VIEWS) : [];
  } catch {
    return [];
  }
}

function isView(found: unknown): found is View {
  const { name, search } = (found ?? {}) as Partial<Record<keyof View, unknown>>;
  return typeof name === "string" && name !== "" && typeof search === "string" && (search === "" || search.startsWith("?"));
}

/** The views with another one, in the order of their names; one of the same name is replaced. */
export function withView(views: readonly View[], view: View): View[] {
  return [...views.filter(({ name }) => name !== view.name), view].toSorted((one, other) => one.name.localeCompare(other.name)).slice(0, MOST_VIEWS);
}

/** The views of a list that the user has saved in this browser; each tenant and each user has its own. */
export function useViews(list: string) {
  const session = useSession().data;
  const place = `views:${session?.tenant ?? ""}:${session?.userId ?? session?.keyId ?? ""}:${list}`;
  const [{ from, views }, set] = useState(() => ({ from: place, views: viewsIn(keptText(place)) }));
  if (from !== place) set({ from: place, views: viewsIn(keptText(place)) });
  const change = useCallback(
    (next: View[]) => {
      keepText(place, next.length > 0 ? JSON.stringify(next) : null);
      set({ from: place, views: next });
    },
    [place],
  );
  return {
    views,
    save: (view: View) => change(withView(views, view)),
    remove: (name: string) => change(views.filter((view) => view.name !== name)),
  };
}
