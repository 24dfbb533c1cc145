import type { IncidentIn } from "@/api";
import { withFlags, quoted, type Recipe } from "@/parts/recipes";

const PATH = "/api/v1/incidents";

export function opening(body: IncidentIn): Recipe {
  const { title, severity, note } = body;
  const cli = withFlags(`horai incidents open ${quoted(title)}`, { severity, note }, { severity: "--severity", note: "--note" });
  return { method: "POST", path: PATH, body, ...(cli && { cli }) };
}

export function noting(incident: string, note: string): Recipe {
  return { method: "POST", path: `${PATH}/${incident}/notes`, body: { note }, cli: `horai incidents note ${incident} ${quoted(note)}` };
}

/** Closes an incident, with a note or without one. */
export function closing(incident: string, note: string): Recipe {
  const cli = `horai incidents close ${incident}${note ? ` --note ${quoted(note)}` : ""}`;
  return { method: "POST", path: `${PATH}/${incident}/close`, body: note ? { note } : {}, cli };
}
