import { useTranslation } from "react-i18next";

/** The faults of a text that need no server, named by their text: `field.<fault>`. */
export type TextFault = "name" | "digits" | "rate" | "duration" | "url" | "days";

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/;
const LONGEST_NAME = 128;
const RATE = /^\d+(\s*\/\s*[smh]?)?$/;
const DURATION = /^(\d+(\.\d+)?\s*(ms|[smhdw])?\s*)+$/;
/** A day or a range, of one year or of every year. A name may follow. */
const DAYS = /^(\d{4}-)?\d{2}-\d{2}(\/(\d{4}-)?\d{2}-\d{2})?(\s|$)/;
const DAYS_BEGUN = /^[\d/-]*$/;

/** Each says whether a text is right, or may become so as it is typed. An empty text is still to be filled. */
const IS_RIGHT: Record<Exclude<TextFault, "digits">, (text: string) => boolean> = {
  name: (text) => NAME.test(text),
  rate: (text) => RATE.test(text),
  duration: (text) => DURATION.test(text),
  url: (text) => ["http://", "https://"].some((scheme) => scheme.startsWith(text.toLowerCase())) || /^https?:\/\/[^\s]*$/i.test(text),
  days: (text) => text.split("\n").every((line) => DAYS_BEGUN.test(line.trim()) || DAYS.test(line.trim())),
};

/** The fault of a text, if it has one. */
export function faultOf(kind: Exclude<TextFault, "digits">, text: string): TextFault | null {
  const typed = text.trim();
  if (typed === "") return null;
  if (kind === "name" && /^\d+$/.test(typed)) return "digits";
  return IS_RIGHT[kind](typed) ? null : kind;
}

/** A field to check: how its text is written, and the text. */
type Checked = readonly [kind: Exclude<TextFault, "digits">, text: string | number | null | undefined];

/** The faults of fields in words, while they are typed. */
export function useTextChecks(fields: Record<string, Checked>): Record<string, string> {
  const { t } = useTranslation();
  const faults: Record<string, string> = {};
  for (const [name, [kind, text]] of Object.entries(fields)) {
    const fault = faultOf(kind, String(text ?? ""));
    if (fault !== null) faults[name] = t(`field.${fault}`, { most: LONGEST_NAME });
  }
  return faults;
}
