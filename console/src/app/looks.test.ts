import { expect, test } from "vitest";
import { addressOf, ROUTES } from "../../e2e/routes";
import { router } from "./router";

test("every route of the console is looked at on a desktop and on a phone", () => {
  expect(Object.keys(router.routesByPath).toSorted()).toEqual([...ROUTES].toSorted());
});

test("an address has the objects of its route, and a route without its object is refused", () => {
  expect(addressOf("/workflows/$workflow/runs/$run", { workflow: "a b", run: "7" })).toBe("/workflows/a%20b/runs/7");
  expect(() => addressOf("/jobs/$job", {})).toThrow("/jobs/$job: no job is known");
});
