import { expect, test } from "vitest";
import { SENTENCES } from "@/generated/sentences";
import { type Node, nodesIn } from "@/testing/syntax";
import odd from "./odd-wordings.json";

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

/**
 * Wordings that read like a translation, found by operators; each has a plain one in its place. `tests/test_words.py` holds the texts of the
 * server to the same list.
 */
const ODD_TEXTS = new Set(odd.texts);

test("English texts have none of the wordings that operators stumbled over", () => {
  const english = Object.entries(files).filter(([path]) => path.startsWith("./en/"));
  const found = english.flatMap(([path, texts]) =>
    valuesOf(texts)
      .filter((text) => ODD_TEXTS.has(text) || odd.phrases.some((phrase) => text.toLowerCase().includes(phrase.toLowerCase())))
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
