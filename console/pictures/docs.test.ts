import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { type Language, type Scheme, visiting } from "../e2e/browser";
import { type Say, speaker } from "../e2e/looks";
import { api, until } from "../e2e/server";

/** Where the documentation has its pictures; `tools/pictures.py` names it and fills the server. */
const PLACE = process.env.HORAI_PICTURES ?? "";

interface Picture {
  name: string;
  path: string;
  shows: (page: Page, say: Say) => Promise<unknown>;
  scheme?: Scheme;
  height?: number;
}

interface Instance {
  id: string;
  key?: string | null;
  state: string;
}

async function one(path: string, holds: (found: Instance) => boolean = () => true): Promise<string> {
  return until(async () => (await api<{ items: Instance[] }>("GET", path)).items.find(holds)?.id);
}

async function take(language: Language, suffix: string, pictures: readonly Picture[]): Promise<void> {
  const say = speaker(language);
  for (const { name, path, shows, scheme = "light", height = 930 } of pictures) {
    await visiting({ language, scheme, width: 1280, height, isAlone: true }, async (visit) => {
      const page = await visit.open("/");
      const notice = page.getByRole("button", { name: say("common:notice.hide") });
      if (await notice.isVisible()) await notice.click();
      await visit.load(path);
      await shows(page, say);
      await page.evaluate(() => document.fonts.ready);
      await page.screenshot({ path: join(PLACE, `${name}${suffix}.png`) });
    });
  }
}

test("the pictures of the documentation, in both languages", async () => {
  const blocked = await one("/api/v1/workflows/nightly_report/runs?state=BLOCKED&limit=1");
  const durable = await one("/api/v1/instances?job=checkout&state=SUCCESS&limit=1");
  const pictures: Picture[] = [
    { name: "overview", path: "/", shows: (page) => page.locator("svg").nth(3).waitFor() },
    { name: "run", path: `/workflows/nightly_report/runs/${blocked}`, shows: (page) => page.getByText("mail_report").first().waitFor() },
    { name: "grid", path: "/workflows/nightly_report", height: 1180, shows: (page, say) => page.getByRole("grid", { name: say("workflows:grid.label", { name: "nightly_report" }) }).waitFor() },
    { name: "steps", path: `/instances/${durable}`, shows: (page) => page.getByText("charge").first().waitFor() },
    { name: "job", path: "/jobs/clear_payment", shows: (page) => page.getByText("clear_payment").last().waitFor() },
    { name: "dead-letters", path: "/dead-letters", scheme: "dark", shows: (page) => page.getByText("TimeoutError").first().waitFor() },
  ];
  await take("en", "", pictures);
  await take("zh-CN", ".zh-CN", pictures);
  expect(readdirSync(PLACE)).toEqual(expect.arrayContaining(pictures.flatMap(({ name }) => [`${name}.png`, `${name}.zh-CN.png`])));
});
