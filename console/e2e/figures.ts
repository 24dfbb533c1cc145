import { type Browser, chromium, type Page } from "playwright-core";
import type { TestProject } from "vitest/node";
import startBrowser from "./chromium.ts";

/** The figures of the console in Chromium, as one line of JSON: `node e2e/figures.ts URL SECONDS`; `python -m benchmarks console` runs it. */
const [base = "", seconds = "10"] = process.argv.slice(2);

/** The first one starts processes of the browser and is left out. */
const LOADS = 1 + Math.ceil(Number(seconds) / 2);
const DESKTOP = { viewport: { width: 1440, height: 900 }, baseURL: base };
/** Pixels per frame: 3,600 a second, so that a page of 100 rows is loaded every second. */
const STEP = 60;
/** Milliseconds in which the browser still compiles what a list runs: they are told apart. */
const COLD = Math.min(5_000, Number(seconds) * 500);

/** The value below which a share of the values lies. */
function share(values: readonly number[], part: number): number {
  const inOrder = values.toSorted((one, other) => one - other);
  return inOrder[Math.min(Math.floor(inOrder.length * part), inOrder.length - 1)] ?? 0;
}

/** Wait until the page is drawn with all its data; the event stream never ends, so the network is never idle. */
async function settled(page: Page): Promise<void> {
  await page.locator("h1").first().waitFor();
  await page.locator("[aria-busy=true], .mantine-Skeleton-root:visible").first().waitFor({ state: "detached" });
}

/** Open the overview with an empty cache: the bytes of all responses as they were sent, and when the largest content was painted. */
async function firstScreen(browser: Browser): Promise<{ bytes: number; paintedAt: number }> {
  const context = await browser.newContext(DESKTOP);
  const page = await context.newPage();
  const sizes: Promise<number>[] = [];
  page.on("requestfinished", (request) => sizes.push(request.sizes().then((size) => size.responseBodySize + size.responseHeadersSize)));
  await page.goto("/");
  await settled(page);
  await page.getByRole("img").first().waitFor();
  const paintedAt = await page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        new PerformanceObserver((list) => resolve(list.getEntries().at(-1)!.startTime)).observe({ type: "largest-contentful-paint", buffered: true });
      }),
  );
  const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  await context.close();
  return { bytes, paintedAt };
}

/** Scroll the list of instances; the milliseconds of each frame, of those at first and of the others. */
async function scrolling(browser: Browser): Promise<{ cold: number[]; warm: number[] }> {
  const context = await browser.newContext(DESKTOP);
  const page = await context.newPage();
  await page.goto("/instances");
  await settled(page);
  await page.getByRole("row").nth(20).waitFor();
  const found = await page.evaluate(
    async ([lasts, isCold, step]) => {
      const scroller = document.querySelector("[role=grid]")!.parentElement!;
      const [cold, warm]: [number[], number[]] = [[], []];
      let last = await new Promise<number>(requestAnimationFrame);
      const begun = last;
      while (last < begun + lasts) {
        scroller.scrollTop += step;
        const at = await new Promise<number>(requestAnimationFrame);
        (at < begun + isCold ? cold : warm).push(at - last);
        last = at;
      }
      return { cold, warm, top: scroller.scrollTop };
    },
    [Number(seconds) * 1_000, COLD, STEP] as const,
  );
  await context.close();
  if (found.top === 0) throw new Error("the list did not scroll");
  return found;
}

let address = "";
const stop = await startBrowser({ provide: (_: string, value: string) => (address = value) } as unknown as TestProject);
try {
  const browser = await chromium.connect(address);
  const screens = [];
  for (let load = 0; load < LOADS; load += 1) screens.push(await firstScreen(browser));
  const painted = screens.slice(1).map(({ paintedAt }) => paintedAt);
  const { cold, warm } = await scrolling(browser);
  const found = {
    "first screen": Math.max(...screens.map(({ bytes }) => bytes)) / 1_000,
    "largest contentful paint": share(painted, 0.5),
    "slowest contentful paint": Math.max(...painted),
    "scroll frame p50": share(warm, 0.5),
    "scroll frame p95": share(warm, 0.95),
    "scroll frame p95 at first": share(cold, 0.95),
  };
  process.stdout.write(`${JSON.stringify(found)}\n`);
  await browser.close();
} finally {
  await stop();
}
