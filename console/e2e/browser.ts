import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type axeCore from "axe-core";
import { type Browser, type BrowserContext, chromium as playwright, type Page } from "playwright-core";
import { expect, inject } from "vitest";
import { startOf } from "./chromium";

/** The server under test; `tests/console/test_browser.py` starts it. */
export const BASE = process.env.HORAI_URL ?? "http://127.0.0.1:8470";
const SHOTS = process.env.HORAI_SHOTS ?? new URL(".shots", import.meta.url).pathname;
/** Run by the debugger, not by the page: its policy would let no foreign script in. */
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The package's own arguments run everything in one process, which ends with the first tab that is closed. */
const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];

export interface Setting {
  language?: "en" | "zh-CN";
  scheme?: "light" | "dark";
  width?: number;
  height?: number;
  /** Errors in the console that belong to the test, such as those of a server that was stopped. */
  mayFail?: RegExp;
  /** With a cache, a storage and a clock that no other visit has; others share them, one set for each language. */
  isAlone?: boolean;
  /** Another server than the one that all tests share. */
  base?: string;
}

/** The four looks in which every page must be right. */
export const LOOKS = (["en", "zh-CN"] as const).flatMap((language) =>
  (["light", "dark"] as const).map((scheme) => ({ language, scheme })),
);

/** Two of them that show each language and each scheme, where four would take too long. */
export const OPPOSITES = [
  { language: "en", scheme: "light" },
  { language: "zh-CN", scheme: "dark" },
] as const;

let running: Promise<Browser> | undefined;

/** One browser for all tests of a file. */
async function browser(): Promise<Browser> {
  running ??= playwright.launch({ ...startOf(inject("chromium")), args: ARGUMENTS, headless: true });
  return running;
}

/** Kept from visit to visit: with the files in its cache a page opens in half the time. */
const shared = new Map<string, Promise<BrowserContext>>();

async function contextFor({ language = "en", isAlone, base = BASE }: Setting): Promise<BrowserContext> {
  const open = async (): Promise<BrowserContext> =>
    (await browser()).newContext({
      baseURL: base,
      locale: language,
      reducedMotion: "reduce",
      timezoneId: "Asia/Shanghai",
    });
  if (isAlone) return open();
  const found = shared.get(language) ?? open();
  shared.set(language, found);
  return found;
}

export async function closeBrowser(): Promise<void> {
  await (await running)?.close();
  running = undefined;
  shared.clear();
}

/** A tab that must not report errors nor speak to anybody but the server. */
export class Visit {
  readonly faults: string[] = [];

  private constructor(
    readonly page: Page,
    private readonly setting: Setting,
  ) {}

  static async start(setting: Setting = {}): Promise<Visit> {
    const { scheme = "light", width = 1280, height = 720 } = setting;
    const page = await (await contextFor(setting)).newPage();
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    await page.setViewportSize({ width, height });
    const visit = new Visit(page, setting);
    visit.#listen();
    return visit;
  }

  #listen(): void {
    this.page.on("pageerror", (error) => this.#note(`error: ${error.message}`));
    this.page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") {
        this.#note(`${message.type()}: ${message.text()} (${message.location().url})`);
      }
    });
    this.page.on("request", (request) => {
      if (!request.url().startsWith(this.setting.base ?? BASE)) this.#note(`foreign request: ${request.url()}`);
    });
  }

  #note(fault: string): void {
    if (!this.setting.mayFail?.test(fault)) this.faults.push(fault);
  }

  /** Opens a page of the console and waits until its heading stands and nothing is busy. */
  async open(path: string): Promise<Page> {
    await this.page.goto(path);
    await this.settled();
    return this.page;
  }

  async settled(): Promise<void> {
    await this.page.locator("h1").first().waitFor();
    await this.page.locator("[aria-busy=true], .mantine-Skeleton-root:visible").first().waitFor({ state: "detached" });
  }

  /** No finding of axe that is serious or worse. */
  async expectAccessible(): Promise<void> {
    await this.page.evaluate(AXE);
    const found = await this.page.evaluate(async () => {
      const { axe } = globalThis as unknown as { axe: typeof axeCore };
      const result = await axe.run(document, { resultTypes: ["violations"] });
      return result.violations
        .filter((violation) => violation.impact === "serious" || violation.impact === "critical")
        .map((violation) => `${violation.id}: ${violation.nodes.map((node) => node.html).join(" | ")}`);
    });
    expect(found.join("\n")).toBe("");
  }

  async shoot(name: string): Promise<void> {
    mkdirSync(SHOTS, { recursive: true });
    const { language = "en", scheme = "light" } = this.setting;
    await this.page.screenshot({ path: join(SHOTS, `${name}-${language}-${scheme}.png`) });
  }

  /** What was chosen is forgotten: the next visit begins as the first did. */
  async leave(): Promise<void> {
    await this.page.evaluate(() => localStorage.clear());
    await (this.setting.isAlone ? this.page.context() : this.page).close();
  }

  /** Ends the visit; whatever went wrong on the way fails the test. */
  async end(): Promise<void> {
    await this.leave();
    expect(this.faults.join("\n")).toBe("");
  }
}

/** Does something during a visit, and holds the visit to its rules. */
export async function visiting(setting: Setting, doing: (visit: Visit) => Promise<void>): Promise<void> {
  const visit = await Visit.start(setting);
  try {
    await doing(visit);
  } catch (error) {
    await visit.shoot("failed").catch(() => undefined);
    await visit.leave().catch(() => undefined);
    throw visit.faults.length > 0 ? new Error(`${String(error)}\n${visit.faults.join("\n")}`, { cause: error }) : error;
  }
  await visit.end();
}
