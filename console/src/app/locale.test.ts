import { expect, test } from "vitest";
import { repairLanguage } from "./locale";

const SPOKEN = [
  ["en-US@posix", "en-US"],
  ["C", "en-US"],
  ["zh-CN", "zh-CN"],
  ["de", "de"],
] as const;

test("a language that Intl does not know becomes en-US, and any other stays", () => {
  for (const [language, spoken] of SPOKEN) {
    const browser = { language } as Navigator;
    repairLanguage(browser);
    expect(browser.language).toBe(spoken);
    expect(new Intl.NumberFormat(browser.language).format(1)).toBe("1");
  }
});
