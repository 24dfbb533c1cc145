import { fireEvent, screen, waitFor } from "@testing-library/react";
import { beforeEach, expect, test } from "vitest";
import { fieldErrors, hintOf, ProblemError } from "@/api";
import { clearDrafts } from "@/parts";
import { answers, network } from "@/testing/server";
import { draw, inLanguage } from "@/testing/render";
import { NewJobForm } from "../new";
import { faultsOf } from "./checks";
import { EMPTY } from "./draft";

beforeEach(async () => {
  clearDrafts();
  await inLanguage("en", "panels", "jobs");
});

const typed = (change: Partial<typeof EMPTY>, isSent = false) => faultsOf({ ...EMPTY, ...change }, isSent);

test("a name and an address are checked as they are typed, and empty fields only once the form was sent", () => {
  expect(typed({ name: "my first job" })).toEqual({ name: "name" });
  expect(typed({ name: "123" })).toEqual({ name: "digits" });
  expect(typed({ name: "n".repeat(129) })).toEqual({ name: "nameLong" });
  expect([typed({ url: "htt" }), typed({ url: "https://a b" }), typed({ url: "example.com" })]).toEqual([{}, { "target.url": "url" }, { "target.url": "url" }]);
  expect(typed({})).toEqual({});
  expect(typed({}, true)).toEqual({ name: "required", cron: "required", "target.url": "required" });
  expect(typed({ name: "a", when: "manual", targetType: "worker" }, true)).toEqual({});
});

test("no pattern and no word of the API reaches a form", async () => {
  const problem = {
    type: "about:blank",
    title: "Invalid",
    status: 400,
    code: "X",
    detail: "no",
    hint: 'Give "target": {"type": "http", "url": …}',
    errors: [
      { field: "name", message: "'a b' is not a name: use letters", messageSaid: { code: "NOT_NAMED_SO", text: "", params: { value: "a b", most: 128 } } },
      { field: "target.url", message: "is missing", messageSaid: { code: "IS_MISSING", text: "", params: {} } },
    ],
  };
  const error = new ProblemError(problem as never);

  expect(fieldErrors(error)["name"]).toBe("Use letters, digits, dots, hyphens and underscores, starting with a letter or digit. At most 128 characters.");
  expect(fieldErrors(error)["target.url"]).toBe("This field is required.");
  expect(hintOf(error)).toBeNull();
  await inLanguage("zh-CN");
  expect(fieldErrors(error)["name"]).toBe("请使用字母、数字、点、短横线和下划线，以字母或数字开头，最多 128 个字符。");
});

test("a draft that was left comes back, is discarded on request, and nothing is sent while a field is empty", async () => {
  const calls = network("/api/v1/jobs", answers({}, 400));
  const first = draw(<NewJobForm name="new" start={EMPTY} />);
  fireEvent.change(await screen.findByLabelText("Name"), { target: { value: "half filled" } });
  await screen.findByText(/^Use letters, digits, dots, hyphens and underscores, starting/);
  fireEvent.change(screen.getByLabelText("Name"), { target: { value: "half-filled" } });
  fireEvent.submit(first.container.querySelector("form")!);
  await waitFor(() => expect(screen.getAllByText("This field is required.")).toHaveLength(2));
  expect(calls).toEqual([]);
  first.unmount();

  draw(<NewJobForm name="new" start={EMPTY} />);
  expect((await screen.findByLabelText<HTMLInputElement>("Name")).value).toBe("half-filled");
  fireEvent.click(screen.getByRole("button", { name: "Discard draft" }));
  await waitFor(() => expect(screen.getByLabelText<HTMLInputElement>("Name").value).toBe(""));
  expect(screen.queryByRole("button", { name: "Discard draft" })).toBeNull();
});
