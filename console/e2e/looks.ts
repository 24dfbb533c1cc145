import type { Visit } from "./browser";
import { visiting } from "./browser";

/** Which of the four looks axe sees: each language and each scheme once. */
const CHECKED = { en: "light", "zh-CN": "dark" } as const;

const OTHER = { light: "dark", dark: "light" } as const;

/** Opens pages in both languages, each in both schemes; `look` sees every one of the four. */
export async function inAllLooks(paths: readonly string[], look?: (visit: Visit, path: string) => Promise<void>): Promise<void> {
  for (const language of ["en", "zh-CN"] as const) {
    await visiting({ language }, async (visit) => {
      for (const path of paths) {
        await visit.page.emulateMedia({ colorScheme: CHECKED[language] });
        await visit.open(path);
        await look?.(visit, path);
        await visit.expectAccessible();
        const other = OTHER[CHECKED[language]];
        await visit.page.emulateMedia({ colorScheme: other });
        await visit.page.locator(`html[data-mantine-color-scheme="${other}"]`).waitFor();
        await look?.(visit, path);
      }
    });
  }
}
