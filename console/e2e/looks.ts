import i18next, { type ResourceLanguage } from "i18next";
import type { Page } from "playwright-core";
import { type Language, visiting } from "./browser";

/** The texts of the console as a visitor reads them: `say("jobs:act.trigger")`. */
export type Say = (key: string, values?: Record<string, string>) => string;

/** Brings something before the eyes of a visitor. */
export type Showing = (page: Page, say: Say) => Promise<unknown>;

/** What there is to see at an address: the page, and each of its dialogs. */
export interface Sight {
  path: string;
  /** Waits for what the page is about. */
  shows?: Showing;
  /** Each opens a dialog; Escape closes it. */
  dialogs?: readonly Showing[];
}

const files = import.meta.glob<ResourceLanguage>("../src/i18n/*/*.json", { eager: true, import: "default" });
const texts = i18next.createInstance({ interpolation: { escapeValue: false } });
await texts.init({ resources: {} });
for (const [path, found] of Object.entries(files)) {
  const [language, file] = path.split("/").slice(-2) as [string, string];
  texts.addResourceBundle(language, file.replace(".json", ""), found);
}

/** Presses the first button of the page that has this text. */
export function pressing(key: string, ...more: readonly Showing[]): Showing {
  return async (page, say) => {
    await page.getByRole("main").getByRole("button", { name: say(key), exact: true }).first().click();
    await page.getByRole("dialog").waitFor();
    for (const showing of more) await showing(page, say);
  };
}

/**
 * `make visits` sees pages and dialogs in all four looks. Otherwise pages are seen in both schemes in English and in one of them
 * in Chinese, and dialogs in one of each language, which are one of each scheme.
 */
export const IS_LONG = process.env.HORAI_LONG === "1";

/** Sees everything in its looks: both languages and both schemes. Axe has nothing serious to say of any. */
export async function inAllLooks(sights: readonly Sight[]): Promise<void> {
  for (const [language, scheme] of [["en", "light"], ["zh-CN", "dark"]] as const) {
    const say = speaker(language);
    await visiting({ language, scheme }, async (visit) => {
      for (const { path, shows, dialogs = [] } of sights) {
        const page = await visit.open(path);
        await shows?.(page, say);
        await (IS_LONG || language === "en" ? visit.expectAccessibleInBothSchemes() : visit.expectAccessibleInOtherScheme());
        await visit.shoot(nameOf(path));
        for (const [number, open] of dialogs.entries()) {
          await open(page, say);
          await (IS_LONG ? visit.expectAccessibleInBothSchemes("[role=dialog]") : visit.expectAccessible("[role=dialog]"));
          await visit.shoot(`${nameOf(path)}-dialog-${number + 1}`);
          await page.keyboard.press("Escape");
          await page.getByRole("dialog").waitFor({ state: "detached" });
        }
      }
    });
  }
}

export function speaker(language: Language): Say {
  return texts.getFixedT(language) as unknown as Say;
}

/** `/jobs/known-12-ab` → `jobs-known`. */
function nameOf(path: string): string {
  const words = path.split(/[/?]/).filter(Boolean);
  return words.map((word) => word.replace(/-\d.*|=.*/, "")).join("-") || "overview";
}
