import { existsSync, globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const written = readFileSync("src/app/styles.ts", "utf8");
const MANTINE = "node_modules/@mantine/core";
/** Parts of components in use that no page shows: cards of choices, and the arrow of lists that fold. */
const UNSEEN = new Set(["Accordion", "CheckboxCard", "RadioCard"]);
const sources = import.meta.glob<string>(["../**/*.tsx", "!../**/*.test.tsx"], { eager: true, query: "?raw", import: "default" });

/** The components that pages name. */
function named(): Set<string> {
  const lists = Object.values(sources).flatMap((source) => [...source.matchAll(/import \{([^}]*)\} from "@mantine\/core"/g)]);
  return new Set(lists.flatMap(([, names = ""]) => names.split(",").map((name) => name.trim())));
}

/** The components that others are made of, by all files of the component. */
function partsOf(component: string): string[] {
  const files = globSync(`${MANTINE}/esm/components/${component}/**/*.mjs`).map((file) => readFileSync(file, "utf8"));
  return files.flatMap((file) => [...file.matchAll(/from "(?:\.\.\/)+(\w+)\/\w+\.mjs"/g)].map(([, part]) => part!));
}

test("every component of Mantine that a page uses has its styles, and so has each that it is made of", () => {
  const wanted = named();
  for (const component of wanted) for (const part of partsOf(component)) wanted.add(part);
  const styled = [...wanted].filter((name) => existsSync(`${MANTINE}/styles/${name}.css`) && !UNSEEN.has(name));
  expect(styled.length).toBeGreaterThan(40);
  expect(styled.filter((name) => !written.includes(`/styles/${name}.css"`))).toEqual([]);
});

test("the styles come in the order of Mantine, where a later component changes an earlier one", () => {
  const all = readFileSync(`${MANTINE}/styles.css`, "utf8");
  const listed = [...written.matchAll(/core\/styles\/([\w-]+)\.css"/g)].map(([, name]) => name!);
  const places = listed.map((name) => all.indexOf(readFileSync(`${MANTINE}/styles/${name}.css`, "utf8").trim().slice(0, 80)));
  expect(Math.min(...places)).toBeGreaterThanOrEqual(0);
  expect(listed.filter((_, at) => at > 0 && places[at]! < places[at - 1]!)).toEqual([]);
});
