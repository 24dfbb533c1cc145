import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type axeCore from "axe-core";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { expect, inject } from "vitest";

/** The server under test; `tests/console/test_browser.py` starts it. */
export const BASE = process.env.HORAI_URL ?? "http://127.0.0.1:8470";
/** Where pictures are wanted; without it only what fails is taken, beside the tests. */
const SHOTS = process.env.HORAI_SHOTS;
const FAILED = SHOTS ?? new URL(".shots", import.meta.url).pathname;
/** Run by the debugger, not by the page: its policy would let no foreign script in. */
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Milliseconds for whatever is waited for: the machine may be busy with other tests. */
export const PATIENCE = 60_000;

/** What another size of the window may change beside that: what scrolls, and what is hidden. */
export const SIZES_MATTER = ["scrollable-region-focusable", "aria-hidden-focus", "label", "button-name", "link-name"];

/** What another scheme or another language may change: colours, and names. Of all rules they are a third of the work. */
export const LOOKS_MATTER = ["color-contrast", "link-in-text-block", "html-lang-valid", "label", "select-name", "button-name", "link-name", "aria-input-field-name", "aria-dialog-name"];

export type Language = "en" | "zh-CN";
export type Scheme = "light" | "dark";

export interface Setting {
  language?: Language;
  scheme?: Scheme;
  width?: number;
  height?: number;
  /** Errors in the console that belong to the test, such as those of a server that was stopped. */
  mayFail?: RegExp;
  /** With a cache, a storage and a clock that no other visit has; others share them, one set for each language. */
  isAlone?: boolean;
  /** Another server than the one that all tests share. */
  base?: string;
}

let running: Promise<Browser> | undefined;

/** The browser of all visits, which `chromium.ts` started. */
function browser(): Promise<Browser> {
  running ??= chromium.connect(inject("browser"));
  return running;
}

/** Kept from visit to visit: with the files in its cache a page opens in half the time. */
const shared = new Map<string, Promise<BrowserContext>>();

/** The tabs that visits have left, by language: a new one would start a new process of the browser. */
const left = new Map<string, Page>();

async function contextFor({ language = "en", isAlone, base = BASE }: Setting): Promise<BrowserContext> {
  const open = async (): Promise<BrowserContext> => {
    const found = await (await browser()).newContext({
      baseURL: base,
      locale: language,
      reducedMotion: "reduce",
      timezoneId: "Asia/Shanghai",
    });
    found.setDefaultTimeout(PATIENCE);
    return found;
  };
  if (isAlone) return open();
  const kept = shared.get(language) ?? open();
  shared.set(language, kept);
  return kept;
}

async function tabFor(setting: Setting): Promise<Page> {
  const { language = "en", isAlone } = setting;
  const kept = left.get(language);
  if (isAlone || kept === undefined) return (await contextFor(setting)).newPage();
  left.delete(language);
  return kept;
}

/** A tab that must not report errors nor speak to anybody but the server. */
export class Visit {
  readonly faults: string[] = [];
  #isLoaded = false;
  look: { language: Language; scheme: Scheme };

  private constructor(
    readonly page: Page,
    private readonly setting: Setting,
  ) {
    this.look = { language: setting.language ?? "en", scheme: setting.scheme ?? "light" };
  }

  static async start(setting: Setting = {}): Promise<Visit> {
    const { scheme = "light", width = 1280, height = 720 } = setting;
    const page = await tabFor(setting);
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

  /**
   * Opens a page of the console and waits until its heading stands and nothing is busy. The first page of a visit is loaded; the
   * router leads to the others, as links do. To load the whole console for each takes several times as long.
   */
  async open(path: string): Promise<Page> {
    if (!this.#isLoaded) return this.load(path);
    await this.#walk(path);
    await this.settled();
    return this.page;
  }

  /** The same for an address that the visitor was sent: the console is loaded at it. */
  async load(path: string): Promise<Page> {
    await this.page.goto(path);
    this.#isLoaded = true;
    await this.settled();
    return this.page;
  }

  /** By an address that has no page and no heading: what the page before showed must not be taken for the next one. */
  async #walk(path: string): Promise<void> {
    const push = (to: string) => this.page.evaluate((address) => history.pushState(null, "", address), to);
    await push("/nowhere");
    await this.page.locator("h1").waitFor({ state: "detached" });
    await push(path);
  }

  async settled(): Promise<void> {
    await this.page.locator("h1").first().waitFor();
    await this.page.locator("[aria-busy=true], .mantine-Skeleton-root:visible").first().waitFor({ state: "detached" });
  }

  /** The findings of axe that are serious or worse, on the page or in a part of it. */
  async findings(within = "html", rules?: string[]): Promise<string[]> {
    if (!(await this.page.evaluate(() => "axe" in globalThis))) await this.page.evaluate(AXE);
    return this.page.evaluate(
      async ([part, only]) => {
        const { axe } = globalThis as unknown as { axe: typeof axeCore };
        const result = await axe.run(part, { resultTypes: ["violations"], ...(only && { runOnly: only }) });
        return result.violations
          .filter((violation) => violation.impact === "serious" || violation.impact === "critical")
          .map((violation) => `${violation.id}: ${violation.nodes.map((node) => `${node.html} ${node.failureSummary}`).join(" | ")}`);
      },
      [within, rules] as const,
    );
  }

  async expectAccessible(within?: string, rules?: string[]): Promise<void> {
    const found = await this.findings(within, rules);
    expect(found.join("\n"), `${this.page.url()} ${JSON.stringify(this.look)} ${found.join("\n")}`).toBe("");
  }

  /** The same in both schemes: once by all rules, in English; otherwise by those whose answer may be another one. */
  async expectAccessibleInBothSchemes(within?: string): Promise<void> {
    await this.expectAccessible(within, this.look.language === "en" ? undefined : LOOKS_MATTER);
    await this.expectAccessibleInOtherScheme(within);
  }

  /** The same in the other scheme, which stays, by the rules whose answer may be another one. */
  async expectAccessibleInOtherScheme(within?: string): Promise<void> {
    await this.changeScheme();
    await this.expectAccessible(within, LOOKS_MATTER);
  }

  /** Shows the page in the other scheme from now on. */
  async changeScheme(): Promise<void> {
    const scheme = this.look.scheme === "light" ? "dark" : "light";
    await this.page.emulateMedia({ colorScheme: scheme });
    await this.page.locator(`html[data-mantine-color-scheme=${scheme}]`).waitFor();
    await this.painted();
    this.look = { ...this.look, scheme };
  }

  /** Colours change over a few frames, also where nothing may move. */
  async painted(): Promise<void> {
    await this.page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    await this.page.waitForFunction(() => document.getAnimations().every((animation) => animation.playState !== "running"));
  }

  /** A picture, when pictures are wanted. */
  async shoot(name: string, place = SHOTS): Promise<void> {
    if (place === undefined) return;
    mkdirSync(place, { recursive: true });
    await this.page.screenshot({ path: join(place, `${name}-${this.look.language}-${this.look.scheme}.png`) });
  }

  /** What was chosen is forgotten: the next visit begins as the first did. */
  async leave(): Promise<void> {
    await this.page.evaluate(() => {
      localStorage.clear();
      sessionStorage.clear();
    });
    await (this.setting.isAlone ? this.page.context() : this.page).close();
  }

  /** Leaves the tab to the next visit, with nothing in it. */
  async #vacate(): Promise<void> {
    await this.page.evaluate(() => {
      localStorage.clear();
      sessionStorage.clear();
    });
    this.page.removeAllListeners();
    await this.page.mouse.move(0, 0);
    await this.page.goto("about:blank");
    left.set(this.look.language, this.page);
  }

  /** Ends the visit; whatever went wrong on the way fails the test. */
  async end(): Promise<void> {
    await (this.setting.isAlone || left.has(this.look.language) ? this.leave() : this.#vacate());
    expect(this.faults.join("\n")).toBe("");
  }
}

/** Does something during a visit, and holds the visit to its rules. */
export async function visiting<T>(setting: Setting, doing: (visit: Visit) => Promise<T>): Promise<T> {
  const visit = await Visit.start(setting);
  let found: T;
  try {
    found = await doing(visit);
  } catch (error) {
    await visit.shoot("failed", FAILED).catch(() => undefined);
    await visit.leave().catch(() => undefined);
    throw visit.faults.length > 0 ? new Error(`${String(error)}\n${visit.faults.join("\n")}`, { cause: error }) : error;
  }
  await visit.end();
  return found;
}
