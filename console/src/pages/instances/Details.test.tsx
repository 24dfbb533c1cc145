import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import type { InstanceOut } from "@/api";
import { draw, inLanguage } from "@/testing/render";
import { Details } from "./Details";

const AT = "2026-11-15T12:00:00Z";
const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";

const INSTANCE: InstanceOut = {
  id: "7",
  job: "mail",
  jobId: "1",
  key: null,
  state: "SUCCESS",
  reason: null,
  fireTime: AT,
  executeTime: AT,
  due: null,
  attempt: 1,
  retryCount: 0,
  fence: 1,
  queue: "default",
  priority: "normal",
  payload: null,
  payloadSize: null,
  result: null,
  resultTruncated: false,
  errorCode: null,
  errorMsg: null,
  createdAt: AT,
  startedAt: AT,
  finishedAt: AT,
  node: "one",
  version: null,
  supersedes: null,
  replayOf: null,
  idempotencyKey: "1:2",
};

test("the trace id is shown with a button that copies it, in both languages", async () => {
  for (const [language, name, copy] of [
    ["en", "Trace id", "Copy"],
    ["zh-CN", "追踪 ID", "复制"],
  ] as const) {
    await inLanguage(language, "instances");
    const { unmount } = draw(<Details instance={{ ...INSTANCE, traceId: TRACE }} />);
    expect(screen.getByText(name)).toBeTruthy();
    expect(screen.getByText(TRACE)).toBeTruthy();
    expect(screen.getByRole("button", { name: copy })).toBeTruthy();
    unmount();
  }
});

test("without traces there is no trace id", async () => {
  await inLanguage("en", "instances");
  draw(<Details instance={INSTANCE} />);
  expect(screen.queryByText("Trace id")).toBeNull();
});
