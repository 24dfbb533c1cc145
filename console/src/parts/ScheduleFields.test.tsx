import { screen } from "@testing-library/react";
import { beforeEach, expect, test } from "vitest";
import { draw, inLanguage } from "@/testing/render";
import { answers, network } from "@/testing/server";
import { draftOf } from "./schedule";
import { ScheduleFields } from "./ScheduleFields";

const draft = draftOf({ cron: "0 9 * * 1-5" }, "UTC");

beforeEach(() => void network("", answers({ items: [] })));

test("a cron expression is explained in words, and one that is refused is not", async () => {
  await inLanguage("en");
  const first = draw(<ScheduleFields draft={draft} errors={{}} onChange={() => undefined} />);
  await screen.findByText(/At 09:00, Monday through Friday/);
  first.unmount();
  draw(<ScheduleFields draft={draft} errors={{ cron: "is never reached" }} onChange={() => undefined} />);
  await screen.findByText("is never reached");
  expect(screen.queryByText(/At 09:00/)).toBeNull();
});
