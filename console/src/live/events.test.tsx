import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render } from "@testing-library/react";
import { beforeEach, expect, test, vi } from "vitest";
import { useLiveData } from "./events";

/** The stream as a browser has it, played by the test. */
class Stream extends EventTarget {
  static opened: Stream[] = [];
  static readonly CLOSED = 2;
  readyState = 0;
  close = vi.fn<() => void>();

  constructor(readonly url: string) {
    super();
    Stream.opened.push(this);
  }

  tell(...topics: string[]): void {
    this.dispatchEvent(new MessageEvent("change", { data: JSON.stringify({ topics }) }));
  }

  fail(readyState: number): void {
    this.readyState = readyState;
    this.dispatchEvent(new Event("error"));
  }
}

function Listening(): null {
  useLiveData();
  return null;
}

function listen() {
  const queries = new QueryClient();
  const outdated = vi.spyOn(queries, "invalidateQueries").mockResolvedValue();
  const drawn = render(
    <QueryClientProvider client={queries}>
      <Listening />
    </QueryClientProvider>,
  );
  const told = (): unknown[] => outdated.mock.calls.map(([filter]) => filter?.queryKey?.[0] ?? "everything");
  return { drawn, told, stream: Stream.opened[0]! };
}

beforeEach(() => {
  Stream.opened = [];
  vi.useFakeTimers();
  vi.stubGlobal("EventSource", Stream);
});

test("what changed is asked for again, gathered for a second", () => {
  const { stream, told } = listen();
  stream.tell("jobs", "instances");
  stream.tell("instances");
  vi.advanceTimersByTime(999);
  expect(told()).toEqual([]);

  vi.advanceTimersByTime(1);
  expect(told()).toEqual(["jobs", "instances"]);
  stream.tell("queues");
  vi.advanceTimersByTime(1_000);
  expect(told()).toEqual(["jobs", "instances", "queues"]);
});

test("without a stream everything is asked for every 5 s, until it is back", () => {
  const { stream, told } = listen();
  stream.fail(0);
  vi.advanceTimersByTime(10_000);
  expect(told()).toEqual(["everything", "everything"]);

  stream.dispatchEvent(new Event("open"));
  expect(told().length).toBe(3);
  vi.advanceTimersByTime(60_000);
  expect(told().length).toBe(3);
});

test("a stream that was refused is tried again after 30 s", () => {
  const { stream } = listen();
  stream.fail(Stream.CLOSED);
  vi.advanceTimersByTime(29_999);
  expect(Stream.opened.length).toBe(1);

  vi.advanceTimersByTime(1);
  expect(Stream.opened.length).toBe(2);
});

test("nothing goes on when the console is left", () => {
  const { stream, drawn, told } = listen();
  stream.fail(Stream.CLOSED);
  drawn.unmount();
  vi.advanceTimersByTime(120_000);

  expect(stream.close).toHaveBeenCalledOnce();
  expect([told(), Stream.opened.length, vi.getTimerCount()]).toEqual([[], 1, 0]);
});

test("a message that is no JSON changes nothing", () => {
  const { stream, told } = listen();
  stream.dispatchEvent(new MessageEvent("change", { data: "<html>" }));
  vi.advanceTimersByTime(5_000);
  expect(told()).toEqual([]);
});
