import { expect, test } from "vitest";
import { isTaken, keyReader } from "./keys";

test("two keys lead to a page, and only when the second follows soon", () => {
  const read = keyReader();
  expect(read("g", 0)).toBeNull();
  expect(read("j", 400)).toEqual({ path: "/jobs" });
  expect(read("j", 500)).toBeNull();
  expect(read("g", 1_000)).toBeNull();
  expect(read("j", 9_000)).toBeNull();
});

test("a first key that comes again begins anew, and a wrong second one is forgotten", () => {
  const read = keyReader();
  expect([read("g", 0), read("n", 10), read("w", 20)]).toEqual([null, null, { path: "/workflows/new" }]);
  expect([read("g", 30), read("x", 40), read("j", 50)]).toEqual([null, null, null]);
  expect(read("?", 60)).toBe("help");
});

/** Whether a key that is pressed on an element is taken by it. */
function pressed(target: HTMLElement, init: KeyboardEventInit = {}): boolean {
  let taken = false;
  document.body.replaceChildren(target);
  target.addEventListener("keydown", (event) => {
    taken = isTaken(event);
  });
  target.dispatchEvent(new KeyboardEvent("keydown", { key: "g", bubbles: true, ...init }));
  return taken;
}

test("whoever types in a field, or speaks to a dialog, goes nowhere", () => {
  expect(pressed(document.createElement("div"))).toBe(false);
  expect(pressed(document.createElement("div"), { ctrlKey: true })).toBe(true);
  expect(pressed(document.createElement("input"))).toBe(true);
  expect(pressed(document.createElement("textarea"))).toBe(true);
  const dialog = document.createElement("div");
  dialog.setAttribute("role", "dialog");
  expect(pressed(dialog)).toBe(true);
});
