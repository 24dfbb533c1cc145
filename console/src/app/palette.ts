/** What the palette can do with an object that it has found. */
export const VERBS = ["pause", "resume", "run", "replay"] as const;
export type PaletteVerb = (typeof VERBS)[number];

/** The objects whose actions are offered while no action is typed: more would hide the other results. */
const MOST_UNASKED = 3;

export interface PaletteQuery {
  /** The text to search for. */
  text: string;
  /** The action that the query begins with, if it does. */
  verb: PaletteVerb | null;
}

/** Read `pause mail` as the action and the object; `words` are the names of the actions in the language of the page. */
export function readQuery(query: string, words: Readonly<Record<PaletteVerb, string>>): PaletteQuery {
  const typed = query.trim();
  for (const verb of VERBS) {
    for (const word of [words[verb].toLowerCase(), verb]) {
      const rest = typed.slice(word.length);
      if (typed.toLowerCase().startsWith(word) && /^\s+\S/.test(rest)) return { verb, text: rest.trim() };
    }
  }
  return { verb: null, text: typed };
}

export interface PaletteAct {
  verb: PaletteVerb;
  name: string;
  href: string;
}

interface FoundObjects {
  jobs: readonly { name: string; status: string }[];
  instances: readonly { id: string; key: string | null; state: string }[];
}

/** The actions on what was found. Each leads to the page of its object, where a dialog asks before anything is done. */
export function actsOn(found: FoundObjects, verb: PaletteVerb | null): PaletteAct[] {
  const jobs = found.jobs.slice(0, verb ? undefined : MOST_UNASKED).flatMap(({ name, status }) => {
    const to = (deed: string): string => `/jobs/${encodeURIComponent(name)}?do=${deed}`;
    const hold = status === "PAUSED" ? "resume" : "pause";
    return [{ verb: "run" as const, name, href: to("trigger") }, { verb: hold as PaletteVerb, name, href: to(hold) }];
  });
  const replays = found.instances
    .filter(({ state }) => state === "DEAD")
    .slice(0, verb ? undefined : MOST_UNASKED)
    .map(({ id, key }) => ({ verb: "replay" as const, name: key ?? id, href: `/instances/${id}?do=replay` }));
  return [...jobs, ...replays].filter((act) => verb === null || act.verb === verb);
}
