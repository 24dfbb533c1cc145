import { fireEvent, screen, waitFor } from "@testing-library/react";
import { expect, test } from "vitest";
import { ProblemError, Unreachable } from "@/api";
import { draw } from "@/testing/render";
import { useOnce } from "./once";

type Send = (body: { n: number }) => Promise<string>;

function Button({ body, send, keys }: { body: { n: number }; send: Send; keys: string[] }) {
  const once = useOnce((asked: { n: number }, headers) => {
    keys.push(headers["Idempotency-Key"]);
    return send(asked);
  });
  return (
    <button type="button" data-status={once.status} onClick={() => once.mutate(body)}>
      {once.data}
    </button>
  );
}

const refused = new ProblemError({ type: "", title: "", status: 422, code: "", detail: "no" });
const broken = new ProblemError({ type: "", title: "", status: 503, code: "", detail: "busy" });

test("C51 one key names a request until its outcome is known, and another request has another", async () => {
  const answers = [new Unreachable("lost"), broken, refused, null, null];
  const keys: string[] = [];
  const send: Send = async () => {
    const error = answers[keys.length - 1];
    if (error) throw error;
    return "done";
  };
  const drawn = draw(<Button body={{ n: 1 }} send={send} keys={keys} />);
  const click = async (status: string): Promise<void> => {
    const before = keys.length;
    fireEvent.click(screen.getByRole("button"));
    await waitFor(() => expect(keys.length).toBe(before + 1));
    await waitFor(() => expect(screen.getByRole("button").dataset["status"]).toBe(status));
  };
  for (const status of ["error", "error", "error", "success"]) await click(status);
  const [first, second, third, fourth] = keys;
  expect([second, third]).toEqual([first, first]);
  expect(fourth).not.toBe(first);

  drawn.rerender(<Button body={{ n: 2 }} send={send} keys={keys} />);
  await click("success");
  expect(new Set(keys).size).toBe(3);
});
