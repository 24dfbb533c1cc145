import type { JobDraft } from "./draft";

/** The fault of a field, named by its text in the form: `form.check.<fault>`. */
export type Fault = "required" | "name" | "nameLong" | "digits" | "url";

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/;
const LONGEST_NAME = 128;

/**
 * The faults that need no server, by the field that the API names. An empty field is a fault only once the form was sent: until
 * then it is still to be filled.
 */
export function faultsOf(draft: JobDraft, isSent: boolean): Record<string, Fault> {
  const faults: Record<string, Fault> = {};
  const name = draft.name.trim();
  if (name !== "" && !NAME.test(name)) faults["name"] = "name";
  else if (name.length > LONGEST_NAME) faults["name"] = "nameLong";
  else if (/^\d+$/.test(name)) faults["name"] = "digits";
  const url = draft.url.trim();
  if (draft.targetType === "http" && url !== "" && !isBegunUrl(url, isSent)) faults["target.url"] = "url";
  if (isSent) for (const [field, text] of requiredOf(draft)) if (text.trim() === "") faults[field] = "required";
  return faults;
}

/** Whether it is an HTTP address, or may become one as it is typed. */
function isBegunUrl(url: string, isSent: boolean): boolean {
  if (/^https?:\/\/[^\s/?#]+/i.test(url)) return !/\s/.test(url);
  return !isSent && ["http://", "https://"].some((scheme) => scheme.startsWith(url.toLowerCase()));
}

function requiredOf(draft: JobDraft): [string, string][] {
  const when: [string, string][] = draft.when === "manual" ? [] : [[draft.when, draft[draft.when]]];
  const targets: Record<JobDraft["targetType"], [string, string][]> = {
    http: [["target.url", draft.url]],
    worker: [],
    nats: [["target.broker", draft.broker], ["target.subject", draft.subject]],
  };
  return [["name", draft.name], ...when, ...targets[draft.targetType]];
}
