import { expect, test } from "vitest";
import { type Node, nodesIn } from "@/testing/syntax";

const all = Object.keys(import.meta.glob(["../**/*.tsx", "!../**/*.test.tsx"]));
const sources = all.filter((path) => !path.startsWith("../parts/"));

/** The components that change something and take a recipe for it. */
const ASKS = new Set(["SavingForm", "ConfirmDialog", "BulkDialog", "HoldDialog"]);

/** Sources that send changes and offer none for copying, with the reason. */
const WITHOUT: Readonly<Record<string, string>> = {
  "../app/Account.tsx": "it ends or changes a session of this browser",
  "../app/SignIn.tsx": "it starts a session of this browser",
  "./jobs/backfill/BackfillWizard.tsx": "its last step does, which is a source of its own",
  "./secrets/SecretForm.tsx": "a copied text would hold the value of a secret",
};

interface Element {
  name: { name?: string };
  attributes: Node[];
}

/** Whether an element has the attribute, also by an object that is spread over it. */
function has(element: Element, wanted: string): boolean {
  return element.attributes.some((attribute) => {
    if (attribute.type === "JSXAttribute") return (attribute["name"] as { name: string }).name === wanted;
    return JSON.stringify(attribute).includes(`"name":"${wanted}"`);
  });
}

const elementsOf = (path: string) =>
  nodesIn(new URL(path, import.meta.url))
    .filter((node) => node.type === "JSXOpeningElement")
    .map((node) => ({ path, element: node as unknown as Element }));
const elements = sources.flatMap(elementsOf);
const named = (path: string): string[] => elements.filter((each) => each.path === path).map(({ element }) => element.name.name ?? "");

test("every dialog and form that changes something can be copied for curl, the command line and Python", () => {
  const asking = elements.filter(({ element }) => ASKS.has(element.name.name ?? ""));
  expect(asking.length).toBeGreaterThan(40);
  expect(asking.filter(({ element }) => !has(element, "recipe")).map(({ path, element }) => `${path}: ${element.name.name}`)).toEqual([]);
});

test("every source that sends a change by itself offers it for copying, or says here why not", () => {
  const sending = sources.filter((path) => {
    const names = nodesIn(new URL(path, import.meta.url)).map((node) => (node.type === "CallExpression" ? (node["callee"] as { name?: string }).name : undefined));
    return names.some((name) => name === "useMutation" || name === "useOnce" || name === "useWork");
  });
  expect(sending.length).toBeGreaterThan(15);
  const silent = sending.filter((path) => !named(path).some((name) => name === "CopyAs" || ASKS.has(name)));
  expect(silent.toSorted()).toEqual(Object.keys(WITHOUT).toSorted());
});

test("no form lets the browser say what is missing, in the language of the browser", () => {
  const found = all.flatMap(elementsOf);
  expect(found.filter(({ element }) => element.attributes.some((attribute) => /"name":"component".*"value":"form"/.test(JSON.stringify(attribute)))).map(({ path }) => path), "a component that is a form: write renderRoot").toEqual([]);
  const forms = found.filter(({ element }) => element.name.name === "form");
  expect(forms.length).toBeGreaterThan(8);
  expect(forms.filter(({ element }) => !has(element, "noValidate")).map(({ path }) => path)).toEqual([]);
});
