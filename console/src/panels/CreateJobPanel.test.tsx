import { fireEvent, screen, waitFor } from "@testing-library/react";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { draw, inLanguage } from "@/testing/render";
import { answers, isDown, network } from "@/testing/server";
import { CreateJobPanel } from "./CreateJobPanel";

const JOBS = "/api/v1/jobs";
const DRAFT = { name: "coupon_job", cron: "0 */5 * * * ?" };
const CREATED = answers({ id: "7", name: "coupon_job" }, 201);

function panel(draft = DRAFT, onCreated?: (jobId: string) => void) {
  return (
    <CreateJobPanel draft={draft} onCreated={onCreated}>
      {(errors) => <p>{errors["cron"]}</p>}
    </CreateJobPanel>
  );
}

function submit(): void {
  fireEvent.submit(document.querySelector("form")!);
}

async function phase(wanted: string): Promise<void> {
  await waitFor(() => expect(document.querySelector("form")?.dataset["phase"]).toBe(wanted));
}

describe("in Chinese", () => {
  beforeEach(() => inLanguage("zh-CN", "panels"));

  test("C51 from idle by loading to done: 创建任务, 提交中…, 创建成功", async () => {
    const answer = Promise.withResolvers<Response>();
    const calls = network(JOBS, () => answer.promise);
    const onCreated = vi.fn<(jobId: string) => void>();
    draw(panel(DRAFT, onCreated));
    expect(screen.getByRole("button", { name: "创建任务" })).toBeTruthy();

    submit();
    await phase("loading");
    expect(screen.getAllByText("提交中…").length).toBeGreaterThan(0);
    submit();

    answer.resolve(CREATED());
    await phase("done");
    expect(screen.getByRole("button", { name: "创建成功" })).toBeTruthy();
    expect(onCreated).toHaveBeenCalledWith("7");
    expect(calls.map((call) => [call.method, call.body])).toEqual([["POST", DRAFT]]);
  });

  test("C51 a refusal is 创建失败 with the server's words, at the field too", async () => {
    const errors = [{ field: "cron", message: "has 2 fields" }];
    network(JOBS, answers({ detail: "The cron is wrong.", status: 422, code: "SCH_422_INVALID", title: "Invalid", errors }, 422));
    draw(panel());
    submit();

    await phase("error");
    expect(screen.getByRole("alert").textContent).toContain("创建失败: The cron is wrong.");
    expect(screen.getByText("has 2 fields")).toBeTruthy();
    expect(screen.getByRole("button", { name: "创建任务" })).toBeTruthy();
  });

  test("C51 no answer is 网络异常", async () => {
    network(JOBS, isDown);
    draw(panel());
    submit();

    await phase("error");
    expect(screen.getByRole("alert").textContent).toContain("网络异常: TypeError: Failed to fetch");
  });

  test("C51 one idempotency key per draft, kept until the outcome is known", async () => {
    const overloaded = answers({ detail: "busy", status: 503, title: "", code: "" }, 503);
    const taken = answers({ detail: "exists", status: 409, title: "", code: "SCH_409_DUPLICATE", jobId: "3" }, 409);
    const calls = network(JOBS, isDown, overloaded, taken, CREATED, CREATED);
    const drawn = draw(panel());
    const keys = (): (string | null)[] => calls.map((call) => call.headers.get("Idempotency-Key"));
    for (const [count, wanted] of ["error", "error", "error", "done"].entries()) {
      submit();
      await waitFor(() => expect(calls.length).toBe(count + 1));
      await phase(wanted);
    }
    const [first, second, third, fourth] = keys();
    expect([second, third]).toEqual([first, first]);
    expect(fourth).not.toBe(first);

    drawn.rerender(panel({ ...DRAFT, name: "other" }));
    await phase("idle");
    submit();
    await phase("done");
    expect(new Set(keys()).size).toBe(3);
  });

  test("C51 another draft while the outcome of the first is unknown has a key of its own", async () => {
    const calls = network(JOBS, isDown, CREATED);
    const drawn = draw(panel());
    submit();
    await phase("error");
    drawn.rerender(panel({ ...DRAFT, name: "other" }));
    submit();
    await phase("done");

    expect(calls[0]?.headers.get("Idempotency-Key")).not.toBe(calls[1]?.headers.get("Idempotency-Key"));
  });

  test("C51 a job that the lost request had created counts as created", async () => {
    const calls = network(JOBS, isDown, () => {
      const idempotencyKey = calls[1]?.headers.get("Idempotency-Key");
      return answers({ detail: "used before", status: 409, title: "", code: "", jobId: "9", idempotencyKey }, 409)();
    });
    const onCreated = vi.fn<(jobId: string) => void>();
    draw(panel(DRAFT, onCreated));
    submit();
    await phase("error");
    submit();
    await phase("done");

    expect(onCreated).toHaveBeenCalledWith("9");
  });
});

test("C51 the panel says the same in English", async () => {
  await inLanguage("en", "panels");
  network(JOBS, isDown, answers({ detail: "no", status: 422, title: "", code: "" }, 422), CREATED);
  draw(panel());
  expect(screen.getByRole("button", { name: "Create job" })).toBeTruthy();
  submit();
  await phase("error");
  expect(screen.getByRole("alert").textContent).toContain("Network error: TypeError: Failed to fetch");
  submit();
  await waitFor(() => expect(screen.getByRole("alert").textContent).toContain("Not created: no"));
  submit();
  await phase("done");
  expect(screen.getByRole("button", { name: "Created" })).toBeTruthy();
});
