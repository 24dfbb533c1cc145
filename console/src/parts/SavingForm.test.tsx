import { TextInput } from "@mantine/core";
import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, test, vi } from "vitest";
import { ProblemError } from "@/api";
import { draw, inLanguage } from "@/testing/render";
import { network } from "@/testing/server";
import { SavingForm } from "./SavingForm";

const INVALID = { type: "", title: "Invalid", status: 422, code: "SCH_422", detail: "Some fields are wrong." };

beforeEach(async () => {
  network("");
  await inLanguage("en");
});

function show(save: () => Promise<unknown>, required?: Record<string, unknown>) {
  const onClose = vi.fn<() => void>();
  draw(
    <SavingForm fields={["to"]} {...(required && { required })} topic="alerts" needs="operator" confirm="Save it" save={save} onClose={onClose}>
      {(faults) => <TextInput label="Recipients" error={faults["to"]} required withAsterisk={false} />}
    </SavingForm>,
  );
  return onClose;
}

test("a form that is saved closes", async () => {
  const save = vi.fn<() => Promise<unknown>>().mockResolvedValue(null);
  const onClose = show(save);
  await userEvent.click(screen.getByRole("button", { name: "Save it" }));
  await waitFor(() => expect(onClose).toHaveBeenCalledOnce());
  expect(save).toHaveBeenCalledOnce();
});

test("a fault of an entry stands at the field of its list, and the form stays open", async () => {
  const onClose = show(() => Promise.reject(new ProblemError({ ...INVALID, errors: [{ field: "to.1", message: "is not a mail address" }] } as never)));
  await userEvent.type(screen.getByLabelText("Recipients"), "kept");
  await userEvent.click(screen.getByRole("button", { name: "Save it" }));
  await screen.findAllByText(/is not a mail address/);
  expect(screen.getByLabelText("Recipients").getAttribute("aria-invalid")).toBe("true");
  expect((screen.getByLabelText("Recipients") as HTMLInputElement).value).toBe("kept");
  expect(onClose).not.toHaveBeenCalled();
});

test("a fault of a field that the form does not have is shown as a whole", async () => {
  show(() => Promise.reject(new ProblemError({ ...INVALID, errors: [{ field: "If-Match", message: "is not an ETag" }] } as never)));
  await userEvent.click(screen.getByRole("button", { name: "Save it" }));
  expect((await screen.findByRole("alert")).textContent).toContain("is not an ETag");
});

/** Save a form whose required list is empty, in a language. */
async function saveEmpty(language: "en" | "zh-CN", said: string): Promise<void> {
  await inLanguage(language);
  const save = vi.fn<() => Promise<unknown>>().mockResolvedValue(null);
  show(save, { to: [], name: "kept" });
  expect(document.querySelector("form")!.noValidate).toBe(true);
  expect(screen.queryByText(said)).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: "Save it" }));
  await screen.findByText(said);
  expect(save).not.toHaveBeenCalled();
  expect(document.activeElement).toBe(screen.getByLabelText("Recipients"));
}

test("an empty field that is required is said at it in English, has the cursor, and nothing is sent", async () => {
  await saveEmpty("en", "This field is required.");
  expect(screen.getByLabelText("Recipients").getAttribute("aria-invalid")).toBe("true");
});

test("an empty field that is required is said at it in Chinese, has the cursor, and nothing is sent", async () => {
  await saveEmpty("zh-CN", "不能为空。");
  expect(screen.getByLabelText("Recipients").getAttribute("aria-invalid")).toBe("true");
});
