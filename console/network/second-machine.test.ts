import { chromium } from "playwright-core";
import { expect, inject, test } from "vitest";

const { HORAI_URL = "", HORAI_KEY = "", HORAI_JOB = "" } = process.env;

test("a browser on another machine signs in with a key over TLS and reads a job", async () => {
  const browser = await chromium.connect(inject("browser"));
  const context = await browser.newContext({ baseURL: HORAI_URL, locale: "en", ignoreHTTPSErrors: true });
  const page = await context.newPage();
  await page.goto("/jobs");
  await page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor();
  expect(await page.getByText(HORAI_JOB).count()).toBe(0);

  await page.getByPlaceholder("hk_…").fill(HORAI_KEY);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: HORAI_JOB }).click();
  await page.getByRole("heading", { level: 1, name: HORAI_JOB }).waitFor();

  const [cookie] = await context.cookies();
  expect([cookie?.name.startsWith("__Host-"), cookie?.secure, cookie?.httpOnly, cookie?.sameSite]).toEqual([true, true, true, "Strict"]);
  await context.close();
});
