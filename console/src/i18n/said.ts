import type { Sentence } from "@/generated/model";
import i18next from "i18next";

const PLACE = /\{\{(\w+)\}\}/g;
const ENDS = /[。？！…]$/;

/** What the server says, in the language of the page: by its code, and in the server's own English where that is not known here. */
export function inWords(said: Sentence): string {
  const known = i18next.getResource(i18next.language, "said", said.code) as string | undefined;
  if (known === undefined) return said.text;
  const parts = said.params["parts"];
  if (Array.isArray(parts)) return parts.map(inWords).join(known);
  const words = known.replace(PLACE, (place, name: string) => filled(said.params[name], place));
  return said.text.endsWith(".") && !ENDS.test(words) ? `${words}。` : words;
}

function filled(param: Sentence["params"][string] | undefined, place: string): string {
  if (param === undefined || Array.isArray(param)) return place;
  return typeof param === "object" ? inWords(param) : String(param);
}

/** The ids of the instances that a sentence names, in its order, also within the sentences in it. */
export function instancesIn(said: Sentence): string[] {
  const found = Object.entries(said.params).flatMap(([name, param]): string[] => {
    if (Array.isArray(param)) return param.flatMap(instancesIn);
    if (typeof param === "object") return instancesIn(param);
    return name === "instance" && /^\d+$/.test(String(param)) ? [String(param)] : [];
  });
  return [...new Set(found)];
}

/** A text of the server whose sentence may be known: `told.why`, `told.whySaid`. */
export function wordsOf(text: string, said: Sentence | null | undefined): string {
  return said ? inWords(said) : text;
}
