// A worker: it runs functions for a server, over one connection at a time.

import { setTimeout as pause } from "node:timers/promises";

import { Outbox } from "./outbox.ts";
import { reportOfError, reportOfValue } from "./outcome.ts";
import type { AttemptRef, Hello, Lease, ServerMessage, Welcome, WorkerMessage } from "./protocol.ts";
import { nameOf, PATH, PROTOCOL, readMessage } from "./protocol.ts";

const FIRST_PAUSE = 0.1;
const LONGEST_PAUSE = 10;
const WELCOME_WITHIN = 15;
const TRUST = 0.75; // share of the lease for which calls begin, from the last heartbeat that was answered
const ANSWERS_WITHIN = 5;

/** One attempt, as a function gets it. */
export interface Attempt<Payload = unknown> extends Lease {
  payload: Payload;
  /** Aborted when the outcome no longer counts: the instance was cancelled or replaced, or its time is over. */
  signal: AbortSignal;
  /** Report progress from 0 to 1. */
  progress(fraction: number, message?: string): void;
  /** Add a line to the log of the attempt. */
  log(message: string): void;
}

export type Handler = (attempt: Attempt<any>) => unknown;

export interface WorkerOptions {
  /** Addresses of one cluster, such as https://horai.example.com. The worker uses one at a time. */
  servers: string[];
  apiKey?: string;
  handlers: Record<string, Handler>;
  /** Calls that run at once. */
  credits?: number;
  queues?: string[];
  name?: string;
  /** Seconds that running functions get when the worker stops. */
  graceSeconds?: number;
  onEvent?: (event: string, detail: Record<string, unknown>) => void;
}

interface Running {
  ref: AttemptRef;
  abort: AbortController;
}

/** The server has refused the worker, and would refuse it again. */
export class Refused extends Error {}

export class Worker {
  private readonly options: WorkerOptions;
  private readonly outbox = new Outbox();
  private readonly running = new Map<string, Running>();
  private socket: WebSocket | null = null;
  private welcome: Welcome | null = null;
  private resume: { server: string; session: string; token: string } | null = null;
  private beats: number[] = [];
  private heardAt = 0;
  private trustedUntil = 0;
  private isStopping = false;
  private isLeaving = false;
  private changed: () => void = () => {};

  constructor(options: WorkerOptions) {
    this.options = options;
  }

  /** Work until the signal is aborted; then let functions end, report them, and leave. */
  async run(signal: AbortSignal): Promise<void> {
    const drained = new AbortController();
    const stop = () => void this.drain().finally(() => drained.abort());
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
    let failures = 0;
    for (let next = 0; !drained.signal.aborted; next++) {
      const server = this.options.servers[next % this.options.servers.length];
      if (server === undefined) throw new Refused("no server is named");
      const reason = await this.connect(server, drained.signal);
      failures = this.welcome === null ? failures + 1 : 0;
      this.welcome = null;
      if (drained.signal.aborted) return;
      const seconds = Math.min(FIRST_PAUSE * 2 ** failures, LONGEST_PAUSE) * (0.5 + Math.random() / 2);
      this.tell("disconnected", { server, reason, pause: seconds });
      await pause(seconds * 1000, undefined, { signal: drained.signal }).catch(() => {});
    }
  }

  /** Serve one connection to its end. Returns the reason of the end. */
  private connect(server: string, end: AbortSignal): Promise<string> {
    return new Promise((resolve) => {
      const headers = this.options.apiKey === undefined ? {} : { authorization: `Bearer ${this.options.apiKey}` };
      const url = server.replace(/^http/, "ws") + PATH;
      const socket = new WebSocket(url, { headers } as unknown as string[]);
      let beating: NodeJS.Timeout | undefined;
      const late = setTimeout(() => finish("the server has not answered in time"), WELCOME_WITHIN * 1000);
      const finish = (reason: string) => {
        clearTimeout(late);
        clearInterval(beating);
        end.removeEventListener("abort", ended);
        this.socket = null;
        socket.onmessage = socket.onclose = socket.onerror = socket.onopen = null;
        socket.close();
        resolve(reason);
      };
      const ended = () => finish("the worker stops");
      end.addEventListener("abort", ended, { once: true });
      let greetedAt = 0;
      socket.onopen = () => {
        greetedAt = now();
        socket.send(JSON.stringify(this.hello(server)));
      };
      socket.onclose = (event: CloseEvent) => finish(`closed with code ${event.code} ${event.reason}`);
      socket.onerror = () => finish("the connection failed");
      socket.onmessage = (event: MessageEvent) => {
        const message = readMessage(String(event.data));
        this.heardAt = now();
        if (message === null) return;
        if (message.type === "error") {
          this.tell("error", { code: message.code, detail: message.detail });
          if (message.isFatal === true) finish(message.detail);
          return;
        }
        if (message.type !== "welcome") {
          this.hear(message);
          return;
        }
        clearTimeout(late);
        this.socket = socket;
        this.begin(server, message, greetedAt);
        beating = setInterval(() => {
          if (now() - this.heardAt > message.leaseSeconds) finish("the server is silent");
          else this.beat();
        }, message.heartbeatSeconds * 1000);
      };
    });
  }

  private hello(server: string): Hello {
    const holding = new Map<string, AttemptRef>();
    for (const { ref } of this.running.values()) holding.set(nameOf(ref), ref);
    for (const { instance, fence } of this.outbox.reports.values()) {
      holding.set(nameOf({ instance, fence }), { instance, fence });
    }
    const hello: Hello = {
      type: "hello",
      protocol: PROTOCOL,
      name: this.options.name ?? "worker",
      handlers: Object.keys(this.options.handlers).map((name) => ({ name })),
      credits: this.options.credits ?? 100,
      holding: [...holding.values()],
    };
    if (this.options.queues !== undefined) hello.queues = this.options.queues;
    if (this.resume !== null && this.resume.server === server) {
      hello.resume = { session: this.resume.session, token: this.resume.token };
    }
    return hello;
  }

  private begin(server: string, welcome: Welcome, greetedAt: number): void {
    this.welcome = welcome;
    this.resume = { server, session: welcome.session, token: welcome.token };
    this.trustedUntil = greetedAt + welcome.leaseSeconds * TRUST;
    this.beats = [];
    this.isLeaving = false;
    this.tell("connected", { server, resumed: welcome.resumed ?? false, unknown: welcome.unknownHandlers ?? [] });
    this.outbox.sendAgain();
    if (this.isStopping) this.send({ type: "credits", total: 0 });
    this.beat();
    this.flush();
  }

  private beat(): void {
    this.beats.push(now());
    this.send({ type: "heartbeat" });
  }

  private hear(message: Exclude<ServerMessage, Welcome>): void {
    switch (message.type) {
      case "leases":
        for (const lease of message.leases) this.start(lease);
        break;
      case "answers":
        for (const answer of message.answers) {
          this.outbox.reports.delete(nameOf(answer));
          if (answer.result !== "settled") this.tell("late", { ...answer });
        }
        break;
      case "cancel":
        for (const ref of message.attempts) this.running.get(nameOf(ref))?.abort.abort();
        break;
      case "drain":
        this.isLeaving = this.options.servers.length > 1;
        break;
      case "heartbeat": {
        const sentAt = this.beats.shift();
        if (sentAt !== undefined && this.welcome !== null) {
          this.trustedUntil = sentAt + this.welcome.leaseSeconds * TRUST;
        }
        break;
      }
      case "error":
        break;
    }
    this.flush();
  }

  /** Begin an attempt, unless it runs already: a lease that was lost on the way is sent again. */
  private start(lease: Lease): void {
    const ref = { instance: lease.instance, fence: lease.fence };
    if (this.running.has(nameOf(ref)) || this.outbox.reports.has(nameOf(ref))) return;
    const handler = this.options.handlers[lease.handler];
    if (handler === undefined || now() >= this.trustedUntil) {
      this.outbox.add({ ...ref, result: "released" });
      return;
    }
    const abort = new AbortController();
    this.running.set(nameOf(ref), { ref, abort });
    void this.attempt(lease, ref, handler, abort);
  }

  private async attempt(lease: Lease, ref: AttemptRef, handler: Handler, abort: AbortController): Promise<void> {
    const attempt: Attempt = {
      ...lease,
      payload: lease.payload ?? null,
      signal: abort.signal,
      progress: (fraction, message) => this.note({ ...ref, progress: fraction, ...(message && { message }) }),
      log: (message) => this.note({ ...ref, message }),
    };
    try {
      this.outbox.add(reportOfValue(ref, await withinTimeout(handler, attempt, lease, abort)));
    } catch (error) {
      this.outbox.add(reportOfError(ref, error));
    } finally {
      this.running.delete(nameOf(ref));
      this.flush();
    }
  }

  private note(note: Parameters<Outbox["note"]>[0]): void {
    this.outbox.note(note);
    this.flush();
  }

  private send(message: WorkerMessage): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  private flush(): void {
    if (this.socket?.readyState === WebSocket.OPEN && this.welcome !== null) {
      for (const text of this.outbox.take(this.welcome.limits)) this.socket.send(text);
    }
    if (this.isLeaving && this.running.size === 0 && this.outbox.reports.size === 0) {
      this.send({ type: "bye" });
      this.socket?.close();
    }
    this.changed();
  }

  /** Take no more work, let functions end within the grace period, and wait for the answers to their reports. */
  private async drain(): Promise<void> {
    this.isStopping = true;
    this.send({ type: "credits", total: 0 });
    await this.until(() => this.running.size === 0, this.options.graceSeconds ?? 10);
    for (const [name, { ref, abort }] of this.running) {
      abort.abort();
      this.running.delete(name);
      this.outbox.add({ ...ref, result: "failed", code: "WORKER_STOPPED", message: "The worker stopped." });
    }
    this.flush();
    await this.until(() => this.outbox.reports.size === 0, ANSWERS_WITHIN);
    this.send({ type: "bye" });
  }

  /** Wait until a condition holds, for some seconds at most. */
  private until(holds: () => boolean, seconds: number): Promise<void> {
    return new Promise((resolve) => {
      const over = setTimeout(done, seconds * 1000);
      const changed = this.changed;
      const check = () => {
        changed();
        if (holds()) done();
      };
      function done(): void {
        clearTimeout(over);
        resolve();
      }
      this.changed = check;
      check();
    });
  }

  private tell(event: string, detail: Record<string, unknown>): void {
    this.options.onEvent?.(event, detail);
  }
}

function now(): number {
  return performance.now() / 1000;
}

/** Run a function; abort it and throw when its timeout is over. */
async function withinTimeout(
  handler: Handler,
  attempt: Attempt,
  lease: Lease,
  abort: AbortController,
): Promise<unknown> {
  if (lease.timeoutSeconds === undefined) return await handler(attempt);
  const seconds = lease.timeoutSeconds;
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      abort.abort();
      reject(Object.assign(new Error(`The function did not end within ${seconds} s.`), { code: "TIMEOUT" }));
    }, seconds * 1000);
  });
  try {
    return await Promise.race([handler(attempt), over]);
  } finally {
    clearTimeout(timer);
  }
}
