/**
 * Give the browser a language that `Intl` knows. A browser that was started with LANG=C calls its language "en-US@posix",
 * and the library of the charts formats numbers in the browser's language: every page with a chart would fail.
 */
export function repairLanguage(browser: Navigator): void {
  try {
    Intl.getCanonicalLocales(browser.language);
  } catch {
    Object.defineProperty(browser, "language", { value: "en-US", configurable: true });
  }
}

repairLanguage(navigator);
