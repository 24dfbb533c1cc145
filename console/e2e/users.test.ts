import { expect, test } from "vitest";
import { visiting } from "./browser";
import { control } from "./server";

const EXPECTED = /status of 40[13]|http:\/\/localhost:\d+\//; // refusals, and the pages of the provider

async function asked(base: string, key: string, path: string, body: unknown): Promise<void> {
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${key}` };
  const response = await fetch(base + path, { method: "POST", headers, body: JSON.stringify(body) });
  expect(response.ok, await response.clone().text()).toBe(true);
}

test("C42a a user signs in with the identity provider, switches the tenant in every tab, and signs out", async () => {
  const [base = "", platform = "", admin = ""] = (await control("users")).split(" ");
  await asked(base, admin, "/api/v1/jobs", { name: "nightly" });

  await visiting({ base, isAlone: true, mayFail: EXPECTED }, async (visit) => {
    const page = await visit.open("/jobs");
    const enter = page.getByRole("link", { name: "Sign in with localhost" });
    await enter.waitFor();
    await visit.expectAccessible();
    await visit.shoot("sign-in-provider");
    await enter.click();
    await page.getByRole("link", { name: "Continue" }).click();
    await page.getByText("none of your groups has a role here").waitFor();
    expect(new URL(page.url()).origin).toBe(base);
    await visit.expectAccessible();
    await visit.shoot("sign-in-refused");

    await asked(base, platform, "/api/v1/tenants", { name: "north" });
    await asked(base, platform, "/api/v1/groups", { group: "staff", role: "operator", tenant: "default" });
    await asked(base, platform, "/api/v1/groups", { group: "staff", role: "platform-admin" });
    await asked(base, platform, "/api/v1/groups", { group: "staff", role: "viewer", tenant: "north" });
    await page.goto(`${base}/jobs`);
    await enter.click();
    await page.getByRole("link", { name: "Continue" }).click();
    await page.getByRole("link", { name: "nightly" }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/jobs");
    expect(await page.evaluate(() => document.cookie)).toBe("");

    const other = await page.context().newPage();
    await other.goto(`${base}/jobs`);
    await other.getByRole("link", { name: "nightly" }).waitFor();
    await page.getByRole("button", { name: "Account: default" }).click();
    await page.getByText("Role: operator").waitFor();
    await visit.expectAccessible();
    await visit.shoot("account-menu");
    await page.getByRole("menuitem", { name: "north (viewer)" }).click();
    await page.getByRole("button", { name: "Account: north" }).waitFor();
    await other.getByRole("button", { name: "Account: north" }).waitFor();
    await other.close();
    await page.locator("nav").getByRole("link", { name: "Jobs" }).click();
    await page.getByRole("heading", { level: 1, name: "Jobs" }).waitFor();
    await visit.settled();
    expect(await page.getByRole("link", { name: "nightly" }).count()).toBe(0);

    await page.getByRole("button", { name: "Account: north" }).click();
    await page.getByRole("menuitem", { name: "Platform (platform-admin)" }).click();
    await page.getByRole("button", { name: "Account: Platform" }).waitFor();
    await page.locator("nav").getByRole("link", { name: "Keys & tenants" }).click();
    await page.getByRole("button", { name: "Map group" }).click();
    await page.getByRole("dialog").getByLabel("Group").fill("night-shift");
    await page.getByRole("dialog").getByLabel("Tenant").fill("north");
    await page.getByRole("dialog").getByRole("button", { name: "Map group" }).click();
    await page.getByRole("gridcell", { name: "night-shift", exact: true }).waitFor();
    await visit.settled();
    await visit.expectAccessible();
    await visit.shoot("groups");
    await page.getByRole("button", { name: "Actions for night-shift" }).click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Delete mapping" }).click();
    await page.getByRole("gridcell", { name: "night-shift", exact: true }).waitFor({ state: "detached" });

    await page.getByRole("button", { name: "Account: Platform" }).click();
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await enter.waitFor();
  });
});
