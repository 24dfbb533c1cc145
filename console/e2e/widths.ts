import type { Page } from "playwright-core";

/** Elements that stand out of the window, or whose text stands out of their cell into the next one, by class and text. */
function tooWide(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    // They run in the page, which knows nothing of this file.
    // oxlint-disable-next-line unicorn/consistent-function-scoping
    const nameOf = (element: Element): string => `${element.tagName}.${element.className} ${element.textContent?.slice(0, 60)}`;
    // oxlint-disable-next-line unicorn/consistent-function-scoping
    const isInScroller = (element: Element): boolean => {
      for (let each = element.parentElement; each && each !== document.body; each = each.parentElement) {
        if (["auto", "scroll", "hidden"].includes(getComputedStyle(each).overflowX)) return true;
      }
      return false;
    };
    const { clientWidth, scrollWidth } = document.documentElement;
    const found: string[] = [];
    if (scrollWidth > clientWidth) {
      const wide = [...document.querySelectorAll("body *")].filter((element) => element.getBoundingClientRect().right > clientWidth + 1 && !isInScroller(element));
      found.push(`the page has ${scrollWidth} px of ${clientWidth}`, ...wide.slice(0, 6).map(nameOf));
    }
    const cells = document.querySelectorAll<HTMLElement>("main td, main th, main [role=cell], main [role=gridcell]");
    return [...found, ...[...cells].filter((cell) => cell.scrollWidth > cell.clientWidth + 1 && getComputedStyle(cell).overflowX === "visible").map(nameOf)];
  });
}

/** The same where it lasts: a chart is drawn again some frames after the window has another size. */
export async function staysTooWide(page: Page): Promise<string[]> {
  const deadline = Date.now() + 3_000;
  for (;;) {
    const found = await tooWide(page);
    if (found.length === 0 || Date.now() > deadline) return found;
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
  }
}
