// The functions that the conformance suite calls, in TypeScript. tests/conformance/functions.py has them in Python.

import { setTimeout as pause } from "node:timers/promises";

import { type Attempt, RetryLater, Unrecoverable, Worker } from "./src/index.ts";

const env = process.env;
const apiKey = env["HORAI_API_KEY"];
const worker = new Worker({
  servers: (env["HORAI_SERVER"] ?? "http://127.0.0.1:8470").split(","),
  ...(apiKey !== undefined && { apiKey }),
  credits: Number(env["HORAI_CREDITS"] ?? "2"),
  name: env["HORAI_NAME"] ?? "conformance",
  handlers: {
    echo: (attempt: Attempt) => attempt.payload,
    size: (attempt: Attempt<string>) => attempt.payload.length,
    flaky: (attempt: Attempt<{ failures: number }>) => {
      if (attempt.attempt <= attempt.payload.failures) {
        throw Object.assign(new Error(`attempt ${attempt.attempt}`), { code: "FLAKY" });
      }
      return attempt.attempt;
    },
    broken: () => {
      throw new Unrecoverable("it is broken", { code: "BROKEN", tags: ["conformance"] });
    },
    later: (attempt: Attempt) => {
      if (attempt.attempt === 1) throw new RetryLater(0.05);
      return "later";
    },
    notes: (attempt: Attempt) => {
      attempt.progress(0.5, "half");
      attempt.log("a line");
    },
    wait: async (attempt: Attempt<{ seconds: number }>) => {
      await pause(attempt.payload.seconds * 1000, undefined, { signal: attempt.signal });
      return "waited";
    },
  },
  onEvent: (event, detail) => {
    if (event === "connected") process.stdout.write("Horai is ready\n");
    process.stderr.write(`${event} ${JSON.stringify(detail)}\n`);
  },
});
const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());
await worker.run(stop.signal);
process.exit(0);
