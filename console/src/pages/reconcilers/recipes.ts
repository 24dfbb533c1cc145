import type { ReconcilerIn, ReconcilerPatch } from "@/api";
import { piped, quoted, type Recipe } from "@/parts/recipes";

export function reconcilerCreation(body: ReconcilerIn): Recipe {
  return { method: "POST", path: "/api/v1/reconcilers", body, isOnce: true, cli: piped(body, "horai reconcilers create --file -") };
}

export function reconcilerChange(name: string, body: ReconcilerPatch): Recipe {
  const cli = piped(body, `horai reconcilers change ${quoted(name)} --file -`);
  return { method: "PATCH", path: `/api/v1/reconcilers/${encodeURIComponent(name)}`, body, cli };
}
