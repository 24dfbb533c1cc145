import type { ChannelFields, RuleFields, SilenceIn } from "@/api";
import { withFlags, quoted, type Recipe } from "@/parts/recipes";

/** A copied text has none of these: `***` keeps a stored value, and the server refuses it where there is none. */
const SECRETS = ["url", "secret", "password"] as const;

/** `host=mail.example.com`, `to=a@b,c@d` */
function settingsOf(fields: object): string {
  const texts = Object.entries(fields).map(([name, value]) => `${name}=${Array.isArray(value) ? value.join(",") : String(value)}`);
  return texts.map((text) => ` ${quoted(text)}`).join("");
}

/** Creates a channel, or replaces its fields. */
export function channelSetting(name: string, body: ChannelFields, isNew: boolean): Recipe {
  const hidden = SECRETS.filter((field) => body[field]);
  const shown: ChannelFields = { ...body, ...Object.fromEntries(hidden.map((field) => [field, "***"])) };
  const { kind, ...rest } = body;
  const settings = Object.fromEntries(Object.entries(rest).filter(([field]) => !(SECRETS as readonly string[]).includes(field)));
  const files = hidden.map((field) => ` --${field}-file ${field}.txt`).join("");
  const cli = `horai alerts set-channel ${quoted(name)} ${kind}${settingsOf(settings)}${files}`;
  const path = "/api/v1/alerts/channels";
  return isNew ? { method: "POST", path, body: { name, ...shown }, cli } : { method: "PUT", path: `${path}/${encodeURIComponent(name)}`, body: shown, cli };
}

/** Creates a rule, or replaces its fields. */
export function ruleSetting(name: string, body: RuleFields, isNew: boolean): Recipe {
  const { kind, channels, groupWait, repeatEvery, enabled, ...rest } = body;
  const flags = withFlags("", { channels, groupWait, repeatEvery }, { channels: "--channel", groupWait: "--group-wait", repeatEvery: "--repeat-every" });
  const cli = `horai alerts set-rule ${quoted(name)} ${kind}${settingsOf(rest)}${flags}${enabled === false ? " --disabled" : ""}`;
  const path = "/api/v1/alerts/rules";
  return isNew ? { method: "POST", path, body: { name, ...body }, cli } : { method: "PUT", path: `${path}/${encodeURIComponent(name)}`, body, cli };
}

/** Holds back alerts. The command line has no flag for an end at a time. */
export function silencing(body: SilenceIn): Recipe {
  const flags = { rule: "--rule", job: "--job", tag: "--tag", startsAt: "--from", lasts: "--for", note: "--note" };
  const cli = withFlags("horai alerts silence", { ...body }, flags);
  return { method: "POST", path: "/api/v1/alerts/silences", body, ...(cli && { cli }) };
}
