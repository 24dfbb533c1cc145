import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, test, vi } from "vitest";
import { ProblemError } from "@/api";
import { draw, inLanguage } from "@/testing/render";
import { network } from "@/testing/server";
import { ConfirmDialog } from "./ConfirmDialog";
import { JsonEditor } from "./JsonEditor";

const REFUSED = { type: "", title: "Conflict", status: 409, code: "SCH_409", detail: "It is gone.", hint: "Look again." };

beforeEach(async () => {
  network("");
  await inLanguage("en");
});

function ask(onConfirm: (note: string) => Promise<unknown>, onClose = vi.fn<() => void>()) {
  draw(
    <ConfirmDialog
      opened
      onClose={onClose}
      title="Discard"
      confirm="Discard it"
      note={{ label: "Reason", isRequired: true }}
      onConfirm={onConfirm}
    >
      <p>Really?</p>
    </ConfirmDialog>,
  );
  return onClose;
}

test("a reason that is needed is asked for before anything is done, and goes along", async () => {
  const onConfirm = vi.fn<(note: string) => Promise<unknown>>().mockResolvedValue(null);
  const onClose = ask(onConfirm);
  const button = screen.getByRole("button", { name: "Discard it" });
  expect(button.getAttribute("aria-disabled")).toBe("true");
  await userEvent.click(button);
  expect(onConfirm).not.toHaveBeenCalled();

  await userEvent.type(screen.getByLabelText(/Reason/), " a duplicate ");
  await userEvent.click(screen.getByRole("button", { name: "Discard it" }));
  await waitFor(() => expect(onClose).toHaveBeenCalledOnce());
  expect(onConfirm).toHaveBeenCalledWith("a duplicate");
});

test("a refusal stays in the dialog, in the server's words", async () => {
  const onClose = ask(() => Promise.reject(new ProblemError(REFUSED)));
  await userEvent.type(screen.getByLabelText(/Reason/), "x");
  await userEvent.click(screen.getByRole("button", { name: "Discard it" }));

  const alert = await screen.findByRole("alert");
  for (const words of ["Conflict", "It is gone.", "Look again.", "SCH_409"]) expect(alert.textContent).toContain(words);
  expect(onClose).not.toHaveBeenCalled();
});

test("what is not JSON is said at the field, and never handed on", async () => {
  const onChange = vi.fn<(value: unknown, isValid: boolean) => void>();
  draw(<JsonEditor label="Payload" value={{ n: 1 }} onChange={onChange} />);
  const field = screen.getByLabelText("Payload");
  await userEvent.clear(field);
  expect(onChange).toHaveBeenLastCalledWith(undefined, true);

  await userEvent.type(field, "[[1");
  expect(onChange).toHaveBeenLastCalledWith(undefined, false);
  expect(screen.getByText(/Invalid JSON/)).toBeTruthy();
  await userEvent.type(field, "]");
  expect(onChange).toHaveBeenLastCalledWith([1], true);
});
