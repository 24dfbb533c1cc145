import { fireEvent, screen, waitFor } from "@testing-library/react";
import { beforeEach, expect, test, vi } from "vitest";
import type { SessionOut } from "@/api";
import { SESSION } from "@/live";
import { draw, inLanguage } from "@/testing/render";
import { answers, network } from "@/testing/server";
import { CancelDialog } from "./CancelDialog";
import { cancelling, signalling } from "./recipes";
import { SignalDialog } from "./SignalDialog";

const close = vi.fn<() => void>();
const steps = (openCompensations: number) => answers({ items: [], signals: [], waits: [], openCompensations, nextCursor: null });
const SENT = { id: "1", instanceId: "7", name: "approved", woken: true };

beforeEach(async () => {
  close.mockClear();
  await inLanguage("en", "instances");
});

test("a signal is sent once, with the name of the open wait and its payload", async () => {
  const calls = network("/api/v1/instances/7/signals/approved", answers({ code: "BROKEN", status: 503 }, 503), answers(SENT));
  draw(<SignalDialog id="7" waits={["approved", "paid"]} opened onClose={close} />);
  expect((await screen.findByLabelText<HTMLInputElement>(/^Signal/, { selector: "input" })).value).toBe("approved");
  fireEvent.change(screen.getByLabelText(/^Payload/), { target: { value: '{"by": "ann"' } });
  const send = screen.getByRole("button", { name: "Send signal" });
  fireEvent.click(send);
  expect(calls, "what is not JSON is not sent").toEqual([]);

  fireEvent.change(screen.getByLabelText(/^Payload/), { target: { value: '{"by": "ann"}' } });
  fireEvent.click(screen.getByRole("button", { name: "Send signal" }));
  await waitFor(() => expect(calls).toHaveLength(1));
  await screen.findByRole("alert");
  fireEvent.click(screen.getByRole("button", { name: "Send signal" }));
  await waitFor(() => expect(close).toHaveBeenCalledOnce());
  expect(calls.map((call) => call.body)).toEqual([{ payload: { by: "ann" } }, { payload: { by: "ann" } }]);
  const [first, second] = calls.map((call) => call.headers.get("Idempotency-Key"));
  expect(first, "the answer was lost: the same request again").toBe(second);
});

test("a viewer sees why it cannot send a signal", async () => {
  network("", answers({}));
  const { queries, rerender } = draw(<SignalDialog id="7" waits={["approved"]} opened={false} onClose={close} />);
  queries.setQueryData(SESSION, { keyless: false, role: "viewer" } as SessionOut);
  rerender(<SignalDialog id="7" waits={["approved"]} opened onClose={close} />);
  const send = await screen.findByRole("button", { name: "Send signal" });
  expect(send.getAttribute("aria-disabled")).toBe("true");
  fireEvent.mouseEnter(send);
  await screen.findByText(/operator/);
});

test("a cancel offers compensation only while there is something to undo, and says what it asks for", async () => {
  network("/api/v1/instances/7/steps?limit=100", steps(0));
  const none = draw(<CancelDialog id="7" isRunning={false} opened onClose={close} />);
  await waitFor(() => expect(none.queries.getQueryState(["instances", "7", "steps"])?.status).toBe("success"));
  expect(screen.queryByRole("switch")).toBeNull();
  none.unmount();

  network("/api/v1/instances/7/steps?limit=100", steps(2));
  draw(<CancelDialog id="7" isRunning={false} opened onClose={close} />);
  fireEvent.click(await screen.findByRole("switch", { name: "Undo 2 finished steps first" }));
  await screen.findByText(/^The compensations of the finished steps run first/);
});

test("the recipes name the same request for a shell and the command line", () => {
  expect(signalling("7", "approved", { by: "ann" })).toEqual({
    method: "POST",
    path: "/api/v1/instances/7/signals/approved",
    body: { payload: { by: "ann" } },
    isOnce: true,
    cli: `horai instances signal approved 7 --payload '{"by":"ann"}'`,
  });
  expect(signalling("7", "go on", undefined)).toMatchObject({ body: {}, cli: "horai instances signal 'go on' 7" });
  expect(cancelling("7", true)).toMatchObject({ path: "/api/v1/instances/7/cancel?compensate=true", cli: "horai instances cancel 7 --compensate" });
  expect(cancelling("7", false)).toMatchObject({ path: "/api/v1/instances/7/cancel", cli: "horai instances cancel 7" });
});
