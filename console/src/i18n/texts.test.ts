import { expect, test } from "vitest";
import { SENTENCES } from "@/generated/sentences";
import { type Node, nodesIn } from "@/testing/syntax";

type Texts = { [name: string]: string | Texts };

const files = import.meta.glob<Texts>("./*/*.json", { eager: true, import: "default" });
const sources = Object.keys(import.meta.glob("../**/*.tsx")).filter((path) => !path.includes(".test."));
/** Attributes that people read or hear. */
const SPOKEN = new Set(["label", "title", "placeholder", "aria-label", "description", "alt", "lead", "confirm", "hint"]);
const WORD = /[A-Za-z\u4e00-\u9fff]{2}/;
/** A value to type, such as `coupon_job` or `500ms`, is the same in every language. */
const EXAMPLE = /^[\x21-\x7e…]+$/;
/** Names that are the same in every language. */
const NAMES = new Set(["Horai", "UTC", "cron", "curl", "JSON", "Authorization: Bearer …"]);

function keysOf(texts: Texts, before = ""): string[] {
  return Object.entries(texts).flatMap(([name, value]) =>
    typeof value === "string" ? [before + name] : keysOf(value, `${before}${name}.`),
  );
}

function placeholdersOf(texts: Texts, before = ""): string[] {
  return Object.entries(texts).flatMap(([name, value]) =>
    typeof value === "string"
      ? [...new Set(value.match(/\{\{\w+\}\}/g) ?? [])].map((found) => `${before}${name} ${found}`)
      : placeholdersOf(value, `${before}${name}.`),
  );
}

const SAID = "./zh-CN/said.json";
const namespaces = [...new Set(Object.keys(files).filter((path) => path !== SAID).map((path) => path.split("/").at(-1)!))];

test("both languages have the same texts with the same places in them", () => {
  for (const name of namespaces) {
    const [english, chinese] = [files[`./en/${name}`] ?? {}, files[`./zh-CN/${name}`] ?? {}];
    expect(keysOf(chinese).toSorted(), name).toEqual(keysOf(english).toSorted());
    expect(placeholdersOf(chinese).toSorted(), name).toEqual(placeholdersOf(english).toSorted());
  }
});

test("all that the server may say is known in Chinese, with the same places in it", () => {
  const wanted = Object.entries(SENTENCES).flatMap(([code, places]) => places.map((place) => `${code} {{${place}}}`));
  expect(keysOf(files[SAID] ?? {}).toSorted()).toEqual(Object.keys(SENTENCES).toSorted());
  expect(placeholdersOf(files[SAID] ?? {}).toSorted()).toEqual(wanted.toSorted());
});

test("no text is empty, and what is in Chinese files is not left in English", () => {
  for (const [path, texts] of Object.entries(files)) {
    const flat = JSON.stringify(texts);
    expect(path !== SAID && flat.includes('""'), path).toBe(false);
    expect(path.includes("zh-CN") && !/[\u4e00-\u9fff]/.test(flat), path).toBe(false);
  }
});

function valuesOf(texts: Texts): string[] {
  return Object.values(texts).flatMap((value) => (typeof value === "string" ? [value] : valuesOf(value)));
}

/** Wordings that read like a translation, found by operators; each has a plain one in its place. */
const ODD_TEXTS = new Set([
  "Made", "Tries", "Took", "Init", "Pause (between attempts)", "About it", "Identity", "It has none.", "The whole key", "Give up", "died",
  "Of version", "Passed over", "At once", "Faulty", "Watches over", "As the system", "Tick now", "Not now", "Keep them", "given back", "Spread",
]);
const ODD_PHRASES = [
  "What needs you", "wait for their time", "wait for parents", "has seen to", "Put aside", "nothing publishes events yet", "none is on", "Not well because",
  "outcomes to be written", "Under way", "no target set", "a duty has no node", "What to do, and when", "in the order of a graph", "created later than due",
  "Wanted at", "Next attempt from", "What the function said", "Its time", "as many as it may", "waits for what", "No node executes", "No worker is there",
  "2 chosen", "{{count}} chosen", "Choose none", "Choose all", "while you read this far", "To the newest", "once the list is loaded", "what matches", "Cancel these", "a portion at a time",
  "of the same fault", "last letter", "It was settled before", "a newer wish", "Held by a dead node", "wait for it", "Started by instance", "Make another like this",
  "Only by hand", "On demand", "leave them out", "run beside it", "takes its place", "marching in step", "the clock jumps over", "that comes twice", "on the clocks of",
  "so many", "so long", "What goes first", "its next start undoes", "It makes no new", "To, not included", "Never made", "over clock changes too", "when this is closed",
  "who works on them", "state none of their own", "who makes instances", "who hands them out", "Work taken over", "In agreement", " surplus", "what it wants",
  "rows behind $1", "no object with a list", "Not refreshed for", "past window and tick", "schedules come to", "no jitter helps", "To the overview", "opened anew",
  "There is no such page", "Write it like", "Say from when on", "Give it a key", "A reason is needed", "Also what is", "What has ended", "in a circle",
];

test("English texts have none of the wordings that operators stumbled over", () => {
  const english = Object.entries(files).filter(([path]) => path.startsWith("./en/"));
  const found = english.flatMap(([path, texts]) =>
    valuesOf(texts)
      .filter((text) => ODD_TEXTS.has(text) || ODD_PHRASES.some((phrase) => text.toLowerCase().includes(phrase.toLowerCase())))
      .map((text) => `${path}: ${text}`),
  );
  expect(found).toEqual([]);
});

function literalsOf(node: Node): string[] {
  if (node.type === "JSXText") return [String(node["value"])];
  if (node.type !== "JSXAttribute") return [];
  const { name, value } = node as unknown as { name: { name: string }; value: Node | null };
  if (!SPOKEN.has(name.name) || value?.type !== "Literal") return [];
  const text = String(value["value"]);
  return name.name === "placeholder" && EXAMPLE.test(text) ? [] : [text];
}

test("no text stands in JSX: it would be in one language only", () => {
  const found = sources.flatMap((path) => {
    const texts = nodesIn(new URL(path, import.meta.url)).flatMap(literalsOf).map((text) => text.trim());
    return texts.filter((text) => WORD.test(text) && !NAMES.has(text)).map((text) => `${path}: ${text}`);
  });
  expect(found).toEqual([]);
});
