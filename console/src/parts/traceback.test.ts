import { expect, test } from "vitest";
import { inReadingOrder, piecesOf } from "./traceback";

const WHOLE = `Traceback (most recent call last):
  File "/app/shop/jobs.py", line 12, in charge
    pay(order)
    ~~~^^^^^^^
  File "/app/.venv/lib/python3.12/site-packages/stripe/client.py", line 3, in pay
    raise CardError("no")
stripe.CardError: no

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/usr/lib/python3.12/asyncio/runners.py", line 118, in run
    return self._loop.run_until_complete(task)
  File "/app/shop/jobs.py", line 40, in checkout
    raise Failed from error
shop.Failed: the card`;

test("a traceback is cut into its text and its frames, with the code of each", () => {
  const pieces = piecesOf(WHOLE);
  expect(pieces.map((piece) => ("text" in piece ? piece.text.trim().split("\n")[0] : piece.frames.map((frame) => frame.name)))).toEqual([
    "Traceback (most recent call last):",
    ["charge", "pay"],
    "stripe.CardError: no",
    ["run", "checkout"],
    "shop.Failed: the card",
  ]);
  expect(pieces[1]).toEqual({
    frames: [
      { file: "/app/shop/jobs.py", line: "12", name: "charge", code: "pay(order)\n~~~^^^^^^^", isLibrary: false },
      { file: "/app/.venv/lib/python3.12/site-packages/stripe/client.py", line: "3", name: "pay", code: 'raise CardError("no")', isLibrary: true },
    ],
  });
});

const frame = (name: string, file: string) => ({ name, file, line: "1", code: "", isLibrary: file !== "own" });

test("frames of the application stand before those of libraries, the innermost first", () => {
  const { own, library } = inReadingOrder([frame("a", "own"), frame("b", "lib"), frame("c", "own"), frame("d", "lib")]);
  expect([own.map((one) => one.name), library.map((one) => one.name)]).toEqual([["c", "a"], ["d", "b"]]);
});

test("an error as Horai keeps it, with its text first, and one without a traceback", () => {
  const kept = 'ValueError: no stock\n  File "jobs.py", line 7, in ship\n    raise ValueError("no stock")';
  expect(piecesOf(kept)).toEqual([
    { text: "ValueError: no stock" },
    { frames: [{ file: "jobs.py", line: "7", name: "ship", code: 'raise ValueError("no stock")', isLibrary: false }] },
  ]);
  expect(piecesOf("Gone: <b>410</b>\n\nread more")).toEqual([{ text: "Gone: <b>410</b>\n\nread more" }]);
  expect(piecesOf("")).toEqual([]);
});

test("a long text that begins like frames is cut in no time", () => {
  const began = performance.now();
  piecesOf(`  File "${'a", line '.repeat(20_000)}\n`.repeat(3));
  expect(performance.now() - began).toBeLessThan(1_000);
});
