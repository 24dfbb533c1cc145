import { act, renderHook, waitFor } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { type Tally, useWork } from "./useWork";

const nothing = (): void => undefined;

async function* failing(): AsyncGenerator<Tally> {
  yield { done: 3, left: 0 };
  throw new Error("the server went away");
}

test("work that is stopped ends after the portion it is in", async () => {
  let giveOn = nothing;
  let portions = 0;
  async function* endless(): AsyncGenerator<Tally> {
    for (;;) {
      portions += 1;
      yield { done: portions, left: 0 };
      await new Promise<void>((resolve) => {
        giveOn = resolve;
      });
    }
  }
  const onEnd = vi.fn<() => void>();
  const { result } = renderHook(() => useWork(onEnd));

  act(() => result.current.start(endless()));
  await waitFor(() => expect(result.current.tally.done).toBe(1));
  act(() => result.current.stop());
  expect(result.current.phase).toBe("stopping");
  await act(async () => giveOn());

  await waitFor(() => expect(result.current.phase).toBe("done"));
  expect(portions).toBe(2);
  expect(onEnd).toHaveBeenCalledOnce();
});

test("work that fails says why, and how far it had come", async () => {
  const { result } = renderHook(() => useWork());

  act(() => result.current.start(failing()));

  await waitFor(() => expect(result.current.phase).toBe("done"));
  expect(result.current.tally.done).toBe(3);
  expect(String(result.current.error)).toContain("went away");
});
