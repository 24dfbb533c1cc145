import { afterAll, beforeAll, expect, test } from "vitest";
import { type Language, LOOKS_MATTER, type Scheme, SIZES_MATTER, visiting } from "./browser";
import { reportOf } from "./drills";
import { IS_LONG } from "./looks";
import { addressOf, ONLY_HERE, type Route, ROUTES } from "./routes";
import { api, control, fresh, until } from "./server";
import { Target } from "./target";
import { staysTooWide } from "./widths";

const SIZES = [
  { name: "desktop", width: 1440, height: 900 },
  { name: "phone", width: 390, height: 844 },
] as const;

/** The short form opens each page once and changes the size of the window; the long form opens it at each size. */
const WALKS = IS_LONG ? SIZES.map((size) => [size]) : [SIZES];
const LONG_MINUTES = 900_000;

let target: Target;
const job = fresh("charge_cards_of_all_customers");
const refresh = fresh("prices_of_all_articles");
const asset = `s3://lake/sales/${fresh("of_all_countries")}`;
const known: Record<string, string> = { job, name: asset, node: "first_of_all", workflow: fresh("nightly_settlement"), reconciler: fresh("articles_of_the_shop") };
const made: string[] = [];

/** Creates an object that the end of the tests deletes. */
async function make(collection: string, name: string, body: object): Promise<void> {
  await api("PUT", `${collection}/${name}`, body);
  made.push(`${collection}/${name}`);
}

beforeAll(async () => {
  target = await Target.start();
  await control("worker");
  const refused = { type: "http", url: "http://127.0.0.1:9/refused" };
  await api("POST", "/api/v1/jobs", { name: job, cron: "0 9 * * 1-5", timezone: "Europe/Berlin", target: refused, retry: { maxRetry: 0 }, produces: [asset] }, fresh("once"));
  await api("POST", "/api/v1/jobs", { name: refresh, every: "1d", refresh: { window: "10d" }, target: refused }, fresh("once"));
  await api("POST", `/api/v1/jobs/${refresh}/entities/batch`, { items: [{ key: "k".repeat(200), payload: { article: 7 } }] });
  const source = { type: "http", url: target.url("/articles") };
  await api("POST", "/api/v1/reconcilers", { name: known.reconciler, job, source }, fresh("once"));
  const steps = Array.from({ length: 8 }, (_, number) => ({ name: `step_number_${number}_of_the_settlement`, job, after: [number > 0 ? `step_number_${number - 1}_of_the_settlement` : "first_of_all"] }));
  await api("POST", "/api/v1/workflows", { name: known.workflow, nodes: [{ name: "first_of_all", job }, ...steps] }, fresh("once"));
  await make("/api/v1/calendars", fresh("days_off_of_all_countries"), { holidays: [{ date: "01-01", name: "New Year" }], hours: "09:00-18:00" });
  await make("/api/v1/secrets", fresh("token_of_the_shop"), { value: "hush" });
  const drill = await api<{ id: string }>("POST", "/api/v1/drills", reportOf(fresh("cluster_of_the_shop")));
  const run = async () => (await api<{ run: { id: string } }>("POST", `/api/v1/workflows/${known.workflow}/trigger`, {}, fresh("once"))).run.id;
  const { instance } = await api<{ instance: { id: string } }>("POST", `/api/v1/jobs/${job}/trigger`, {}, fresh("once"));
  await run();
  Object.assign(known, { drill: drill.id, run: await run(), instance: instance.id });
  known.letter = (await until(async () => (await api<{ items: { id: string }[] }>("GET", `/api/v1/dlq?job=${job}`)).items[0]?.id)) ?? "";
});

afterAll(async () => {
  for (const path of made) await api("DELETE", path);
  await target.stop();
});

/**
 * The rules of axe that the short form asks: all of them (undefined) where no other test does, on a phone those that a size matters to, and
 * otherwise none (null), because the tests of the page ask them.
 */
function rulesOf(route: Route, size: "desktop" | "phone", language: Language): string[] | null | undefined {
  if (size === "desktop") return ONLY_HERE.has(route) ? (language === "en" ? undefined : LOOKS_MATTER) : null;
  return language === "en" || ONLY_HERE.has(route) ? SIZES_MATTER : null;
}

/** Opens every page in a look: none is wider than its window, and axe has nothing serious to say where no other test asks it. */
async function walk(language: Language, scheme: Scheme): Promise<void> {
  const found: Record<string, string[]> = {};
  for (const sizes of WALKS) {
    await visiting({ language, scheme, width: sizes[0]!.width, height: sizes[0]!.height }, async (visit) => {
      const { page } = visit;
      for (const [place, route] of ROUTES.entries()) {
        const turns = place % 2 === 0 ? sizes : sizes.toReversed(); // every other page opens on a phone: the window changes once for a page
        await page.setViewportSize(turns[0]!);
        await visit.open(addressOf(route, route === "/refresh/$job" ? { job: refresh } : known));
        for (const { name, width, height } of turns) {
          await page.setViewportSize({ width, height });
          await visit.painted();
          const see = async (rules: string[] | null | undefined): Promise<void> => {
            const faults = [...(await staysTooWide(page)), ...(rules === null ? [] : await visit.findings("html", rules))];
            if (faults.length > 0) found[`${route} ${name} ${visit.look.language} ${visit.look.scheme}`] = faults;
            await visit.shoot(`${name}${route.replaceAll(/[/$]+/g, "-")}`);
          };
          if (!IS_LONG) {
            await see(rulesOf(route, name, language));
            continue;
          }
          await see(undefined);
          await visit.changeScheme();
          await see(LOOKS_MATTER);
          await visit.changeScheme();
        }
      }
    });
  }
  const faults = Object.entries(found).map(([page, each]) => [page, ...each].join("\n  ")).join("\n");
  expect(faults, faults).toBe("");
}

test(
  "in English no page is wider than a desktop of 1440 px or a phone of 390 px, and axe has nothing serious to say",
  () => walk("en", "light"),
  LONG_MINUTES,
);

test(
  "in Chinese no page is wider than a desktop of 1440 px or a phone of 390 px, and axe has nothing serious to say",
  () => walk("zh-CN", "dark"),
  LONG_MINUTES,
);
