import { existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import chromium, { inflate } from "@sparticuz/chromium";
import { chromium as playwright } from "playwright-core";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    /** Where the one browser of all visits is reached. */
    browser: string;
  }
}

const MODULES = new URL("../node_modules", import.meta.url).pathname;
const PLACE = join(MODULES, ".chromium");

/** The package's own arguments run everything in one process, which ends with the first tab that is closed. */
const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];

/** The package's own arguments start no network service of Google's; an installed browser needs them said. */
const QUIET = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"];

/**
 * Start the browser once for all visits. `HORAI_BROWSER` names an installed one (tests/console/chromium.py sets it on every
 * machine but Linux on x86-64); otherwise unpack the one of the package, whose only binary is for Linux on x86-64.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await playwright.launchServer({ ...(await browser()), headless: true });
  project.provide("browser", server.wsEndpoint());
  return () => server.close();
}

interface Start {
  executablePath: string;
  args: string[];
  env?: Record<string, string>;
}

async function browser(): Promise<Start> {
  const installed = process.env.HORAI_BROWSER;
  if (installed) return { executablePath: installed, args: [...ARGUMENTS, ...QUIET] };
  if (process.platform !== "linux" || process.arch !== "x64")
    throw new Error(`the packaged browser is for Linux on x86-64, not ${process.platform} on ${process.arch}: set HORAI_BROWSER`);
  if (!existsSync(PLACE)) await unpack();
  return { ...startOf(PLACE), args: ARGUMENTS };
}

async function unpack(): Promise<void> {
  const { TMPDIR } = process.env;
  const place = mkdtempSync(`${PLACE}-`);
  process.env.TMPDIR = place; // the package unpacks into the directory for temporary files
  try {
    await chromium.executablePath();
    await inflate(join(dirname(createRequire(import.meta.url).resolve("@sparticuz/chromium")), "../bin/al2023.tar.br"));
  } finally {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
  }
  keep(place);
}

/** In one step; where somebody else was faster, his is as good. */
function keep(place: string): void {
  try {
    renameSync(place, PLACE);
  } catch (error) {
    rmSync(place, { recursive: true });
    if (!existsSync(PLACE)) throw error;
  }
}

/** What to start. A bare machine has neither the libraries that the browser is linked to nor any font. */
function startOf(place: string): { executablePath: string; env: Record<string, string> } {
  const fonts: Record<string, string> = existsSync("/etc/fonts/fonts.conf") ? {} : { FONTCONFIG_PATH: join(place, "fonts") };
  const env = Object.fromEntries(Object.entries(process.env).filter((pair): pair is [string, string] => pair[1] !== undefined));
  return { executablePath: join(place, "chromium"), env: { ...env, ...fonts, LD_LIBRARY_PATH: join(place, "al2023/lib") } };
}
