import { expect, test } from "vitest";
import { visiting } from "./browser";
import { control, fresh, until } from "./server";
import { staysTooWide } from "./widths";

const REFUSED = /status of 40[13]/;

let started: Promise<string> | undefined;

/** The address and the first keys of a server that asks for keys, which is started once. */
function closed(): Promise<string> {
  started ??= control("closed");
  return started;
}

async function asked(base: string, key: string, method: string, path: string, body?: unknown): Promise<Record<string, string>> {
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${key}` };
  const response = await fetch(base + path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
  expect(response.ok, await response.clone().text()).toBe(true);
  return (await response.json()) as Record<string, string>;
}

test("C42a a server that asks for keys: sign in, act as the role allows, read the audit log, sign out", async () => {
  const [base = "", platform = "", admin = ""] = (await closed()).split(" ");
  await asked(base, admin, "POST", "/api/v1/jobs", { name: "nightly" });
  const viewer = await asked(base, admin, "POST", "/api/v1/keys", { role: "viewer", name: "wall display" });

  await visiting({ base, isAlone: true, mayFail: REFUSED }, async (visit) => {
    const page = await visit.open("/jobs");
    await page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor();
    await visit.expectAccessible();
    await visit.shoot("sign-in");
    await page.getByPlaceholder("hk_…").fill("hk_wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("The request has no key").waitFor();

    await page.getByPlaceholder("hk_…").fill(viewer.key ?? "");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("link", { name: "nightly" }).click();
    const trigger = page.getByRole("button", { name: "Run now" });
    expect(await trigger.getAttribute("aria-disabled")).toBe("true");
    await trigger.hover();
    await page.getByText("Your role is viewer. This needs the role operator.").waitFor();
    expect(await page.locator("nav").getByRole("link", { name: "Audit log" }).count()).toBe(0);
    expect(await page.evaluate(() => document.cookie)).toBe("");
    await page.getByRole("button", { name: /^Account/ }).click();
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor();

    await page.getByPlaceholder("hk_…").fill(admin);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator("nav").getByRole("link", { name: "Keys & tenants" }).click();
    await page.getByText("wall display").waitFor();
    await visit.settled();
    await visit.expectAccessible();
    await visit.shoot("keys");
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByLabel("Name").fill("deploy");
    await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
    await page.getByText("The key is not shown again.").waitFor();
    expect(await page.getByRole("dialog").innerText()).toMatch(/hk_[0-9a-z]{12}_/);
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("button", { name: "Actions for deploy" }).click();
    await page.getByRole("menuitem", { name: "Revoke" }).click();
    await page.getByRole("button", { name: "Revoke key" }).click();
    await page.getByText("revoked", { exact: true }).waitFor();

    await page.locator("nav").getByRole("link", { name: "Audit log" }).click();
    await page.getByText("key.revoke").waitFor();
    await page.getByRole("button", { name: "Verify", exact: true }).click();
    await page.getByText(/The log is intact/).waitFor();
    await visit.expectAccessible();
    await visit.shoot("audit");
    await page.getByRole("button", { name: /^Time: / }).click();
    await page.getByRole("button", { name: "Last hour" }).click();
    await page.waitForURL(/\/audit\?from=/);
    await page.getByText("key.revoke").waitFor();
    const exported = page.waitForEvent("download");
    await page.getByRole("link", { name: "Download" }).click();
    expect((await exported).suggestedFilename()).toBe("audit.jsonl");
    const rows = (await page.evaluate(async (address) => (await fetch(address)).text(), (await exported).url())).trim().split("\n");
    expect(rows.map((row) => (JSON.parse(row) as { verb: string }).verb)).toContain("key.revoke");
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await staysTooWide(page)).toEqual([]);
    await page.goto(`${base}/audit?to=2020-01-01T00:00:00Z`);
    await page.getByText("No entries").waitFor();
  });

  await visiting({ base, isAlone: true, mayFail: REFUSED }, async (visit) => {
    const page = await visit.open("/access");
    await page.getByPlaceholder("hk_…").fill(platform);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("button", { name: "Create tenant" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("north");
    await page.getByRole("dialog").getByRole("button", { name: "Create tenant" }).click();
    await page.getByText("north").waitFor();
    expect(await page.locator("nav").getByRole("link").allInnerTexts()).toEqual(["Governor", "Incidents", "Drills", "Alerts", "Keys & tenants", "Audit log"]);
    await visit.shoot("platform");
  });
});

test("C2b the platform limits, pauses and deletes a tenant, which sees its quotas and the pause", async () => {
  const [base = "", platform = ""] = (await closed()).split(" ");
  await asked(base, platform, "POST", "/api/v1/tenants", { name: "south" });
  const admin = await asked(base, platform, "POST", "/api/v1/keys", { role: "admin", tenant: "south" });

  await visiting({ base, isAlone: true, mayFail: /status of 4(01|03|22)/ }, async (visit) => {
    const page = await visit.open("/access");
    await page.getByPlaceholder("hk_…").fill(platform);
    await page.getByRole("button", { name: "Sign in" }).click();
    const act = async (name: string) => {
      await page.getByRole("button", { name: "Actions for south" }).click();
      await page.getByRole("menuitem", { name, exact: true }).click();
    };
    await act("Change quotas");
    await page.getByLabel("Jobs").fill("7");
    await page.getByLabel("Callback networks").fill("10.1.0.0/99");
    await visit.expectAccessible();
    await page.getByRole("button", { name: "Save quotas" }).click();
    await page.getByText(/is not a network/).waitFor();
    await page.getByLabel("Callback networks").fill("10.1.0.0/16");
    await page.getByRole("button", { name: "Save quotas" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await act("Pause");
    await page.getByRole("button", { name: "Pause tenant" }).click();
    await page.getByText("paused", { exact: true }).waitFor();
  });

  await visiting({ base, isAlone: true, mayFail: REFUSED }, async (visit) => {
    const page = await visit.open("/tenant");
    await page.getByPlaceholder("hk_…").fill(admin.key ?? "");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText(/The platform has paused this tenant/).waitFor();
    await page.getByText("10.1.0.0/16").waitFor();
    await visit.settled();
    await visit.expectAccessible();
    await visit.shoot("tenant");
  });

  await visiting({ base, isAlone: true, mayFail: REFUSED }, async (visit) => {
    const page = await visit.open("/access");
    await page.getByPlaceholder("hk_…").fill(platform);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("button", { name: "Actions for south" }).click();
    await page.getByRole("menuitem", { name: "Delete", exact: true }).click();
    const confirm = page.getByRole("button", { name: "Delete tenant" });
    expect(await confirm.getAttribute("aria-disabled")).toBe("true");
    await page.getByLabel("Type south to confirm").fill("south");
    await confirm.click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });
  const headers = { Authorization: `Bearer ${platform}` };
  await expect.poll(async () => (await fetch(`${base}/api/v1/tenants/south`, { headers })).status, { timeout: 30_000 }).toBe(404);
});

test("F5 an operator freezes the low priority of the tenant, and the platform forces a mode and returns it to its rule", async () => {
  const [base = "", platform = "", admin = ""] = (await closed()).split(" ");
  const mode = () => asked(base, platform, "GET", "/api/v1/scheduler/mode");

  await visiting({ base, isAlone: true, mayFail: REFUSED }, async (visit) => {
    const page = await visit.open("/governor");
    await page.getByPlaceholder("hk_…").fill(admin);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("button", { name: "Freeze low priority" }).click();
    await page.getByRole("dialog").getByLabel("Note").fill("sale");
    await page.getByRole("dialog").getByRole("button", { name: "Freeze low priority" }).click();
    await page.getByText(/Held for this tenant .* sale/).waitFor();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Unfreeze low priority" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Unfreeze low priority" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Freeze low priority", exact: true }).waitFor();
    await page.getByRole("button", { name: "Actions for CORE_ONLY" }).click();
    await page.getByText("Your role is admin. This needs the role platform-admin.").first().waitFor();
  });

  await visiting({ base, isAlone: true, mayFail: REFUSED }, async (visit) => {
    const page = await visit.open("/governor");
    await page.getByPlaceholder("hk_…").fill(platform);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("button", { name: "Actions for RETRY_SHORT_FIRST" }).click();
    await page.getByRole("menuitem", { name: "Force on" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Force on" }).click();
    await page.getByText("Forced on").waitFor();
    await page.getByText("Retries of runs over 10 seconds wait for 10 minutes").waitFor();
    expect((await mode()).modes).toEqual(["RETRY_SHORT_FIRST"]);
    await visit.settled();
    await visit.expectAccessible();
    await visit.shoot("governor");
    await page.getByRole("button", { name: "Actions for RETRY_SHORT_FIRST" }).click();
    await page.getByRole("menuitem", { name: "Return to its rule" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Return to its rule" }).click();
    await page.getByText("Nothing is limited.").waitFor();
    expect((await mode()).modes).toEqual(["NORMAL"]);
  });
});

test("alerts, events out and calendars leave out what the role may not do, and the platform has alert rules of its own", async () => {
  const [base = "", platform = "", admin = ""] = (await closed()).split(" ");
  await asked(base, admin, "PUT", "/api/v1/calendars/shared", { holidays: ["12-25"] });
  await asked(base, admin, "PUT", "/api/v1/sinks/shared", { kind: "log" });
  await asked(base, admin, "POST", "/api/v1/alerts/channels", { name: "shared", kind: "slack", url: "https://hooks.example.com/x" });
  const keys = await Promise.all(["viewer", "operator"].map((role) => asked(base, admin, "POST", "/api/v1/keys", { role, name: role })));
  const pages = [
    { path: "/alerts", title: "Alerts" },
    { path: "/sinks", title: "Events out" },
    { path: "/calendars", title: "Calendars" },
  ];
  const seen = async (key: string) => {
    const found: string[][] = [];
    await visiting({ base, isAlone: true, mayFail: REFUSED }, async (visit) => {
      const page = await visit.open("/alerts");
      await page.getByPlaceholder("hk_…").fill(key);
      await page.getByRole("button", { name: "Sign in" }).click();
      for (const { path, title } of pages) {
        await page.locator(`nav a[href="${path}"]`).click();
        await page.getByRole("heading", { level: 1, name: title, exact: true }).waitFor();
        await page.getByText("shared", { exact: true }).first().waitFor();
        await visit.settled();
        const names = page.getByRole("main").getByRole("button", { name: /^(Create|Actions for)/ });
        found.push(await names.evaluateAll((buttons) => buttons.map((button) => button.getAttribute("aria-label") ?? button.textContent ?? "")));
      }
    });
    return found;
  };
  expect(await seen(keys[0]?.key ?? "")).toEqual([[], [], []]);
  expect(await seen(keys[1]?.key ?? "")).toEqual([["Actions for shared", "Create silence"], ["Actions for shared"], []]);
  expect(await seen(admin)).toEqual([
    ["Create rule", "Create channel", "Actions for shared", "Create silence"],
    ["Create sink", "Actions for shared"],
    ["Create calendar", "Actions for shared"],
  ]);

  await visiting({ base, isAlone: true, mayFail: REFUSED }, async (visit) => {
    const page = await visit.open("/alerts");
    await page.getByPlaceholder("hk_…").fill(platform);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("No channels yet").waitFor();
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "Create channel" }).click();
    await dialog.getByLabel("Name").fill("on-call");
    await dialog.getByLabel("Kind").first().click();
    await page.getByRole("option", { name: "Slack" }).click();
    await dialog.locator("input[type=password]").first().fill("https://hooks.example.com/y");
    await dialog.getByRole("button", { name: "Create channel" }).click();
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Create rule" }).click();
    await dialog.getByLabel("Name").fill("burning");
    await dialog.getByLabel("Condition").first().click();
    expect(await page.getByRole("option").allInnerTexts()).toEqual(["The governor entered a mode", "The error budget burns fast", "History is not archived", "Partitions of history are missing"]);
    await page.getByRole("option", { name: "The error budget burns fast" }).click();
    await dialog.getByLabel("Channels").first().click();
    await page.getByRole("option", { name: "on-call" }).click();
    await page.keyboard.press("Tab");
    await dialog.getByRole("button", { name: "Create rule" }).click();
    await dialog.waitFor({ state: "detached" });
  });
  expect(await asked(base, platform, "GET", "/api/v1/alerts/rules/burning")).toMatchObject({ kind: "BUDGET_BURN", channels: ["on-call"] });
});

test("a key that is revoked while a form is filled costs nothing that was typed", async () => {
  const [base = "", , admin = ""] = (await closed()).split(" ");
  const brief = await asked(base, admin, "POST", "/api/v1/keys", { role: "admin", name: "brief" });
  const name = fresh("kept");

  await visiting({ base, isAlone: true, mayFail: REFUSED }, async (visit) => {
    const page = await visit.open("/jobs/new");
    await page.getByPlaceholder("hk_…").fill(brief.key ?? "");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByLabel("Name", { exact: true }).fill(name);
    await page.getByLabel("Title", { exact: true }).fill("夜间对账");
    await page.getByText("Manual", { exact: true }).click();
    await page.getByLabel("URL").fill(`${base}/healthz`);
    await asked(base, admin, "DELETE", `/api/v1/keys/${brief.id}`);
    await page.getByRole("button", { name: "Create job" }).click();

    await page.getByPlaceholder("hk_…").fill(admin);
    await page.getByRole("button", { name: "Sign in" }).click();
    await until(async () => (await page.getByLabel("Name", { exact: true }).inputValue()) === name);
    expect(await page.getByLabel("Title", { exact: true }).inputValue()).toBe("夜间对账");
    await page.getByRole("button", { name: "Create job" }).click();
    await page.getByRole("heading", { level: 1, name }).waitFor();
  });
});

test("a viewer sees what needs attention without the buttons that fix it, and an operator has those of its role", async () => {
  const [base = "", , admin = ""] = (await closed()).split(" ");
  const [job, queue] = [fresh("resting"), fresh("resting-queue")];
  await asked(base, admin, "POST", "/api/v1/jobs", { name: job });
  await asked(base, admin, "POST", `/api/v1/jobs/${job}/pause`, { note: "moving house" });
  await asked(base, admin, "PUT", `/api/v1/queues/${queue}`, { paused: true });
  await until(async () => JSON.stringify(await asked(base, admin, "GET", "/api/v1/scheduler/attention")).includes(queue));
  const seen = async (role: string): Promise<string[]> => {
    const key = role === "admin" ? admin : (await asked(base, admin, "POST", "/api/v1/keys", { role, name: fresh(role) })).key;
    let names: string[] = [];
    await visiting({ base, isAlone: true, mayFail: REFUSED }, async (visit) => {
      const page = await visit.open("/jobs");
      await page.getByPlaceholder("hk_…").fill(key ?? "");
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.locator('nav a[href="/"]').click();
      const lines = page.getByRole("listitem").filter({ hasText: "resting" });
      await until(async () => (await lines.count()) === 2);
      names = await lines.getByRole("button").evaluateAll((buttons) => buttons.map((button) => button.getAttribute("aria-label") ?? ""));
    });
    return names.map((name) => name.replace(/-\d.*/, ""));
  };
  expect(await seen("viewer")).toEqual([]);
  expect(await seen("operator")).toEqual(["Resume: resting"]);
  expect(await seen("admin")).toEqual(["Resume: resting-queue", "Resume: resting"]);
});
