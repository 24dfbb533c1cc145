import { afterAll, beforeAll, expect, test } from "vitest";
import { visiting } from "./browser";
import { inAllLooks, pressing } from "./looks";
import { api, fresh } from "./server";
import { Target } from "./target";

let target: Target;

beforeAll(async () => {
  target = await Target.start();
});

afterAll(() => target.stop());

test("alerts are right in both languages and schemes, with their dialogs", async () => {
  await inAllLooks([
    {
      path: "/alerts",
      shows: async (page, say) => page.getByText(say("alerts:lead")).waitFor(),
      dialogs: [pressing("alerts:rules.create"), pressing("alerts:channels.create"), pressing("alerts:silence.create")],
    },
  ]);
});

test("a channel is created, tested with its real result and changed; a rule is created, disabled and deleted", async () => {
  const [channel, rule] = [fresh("hook"), fresh("dead")];
  await visiting({ height: 1400, mayFail: /status of 409/ }, async (visit) => {
    const page = await visit.open("/alerts");
    const dialog = page.getByRole("dialog");
    const act = async (name: string, label: string) => {
      await page.getByRole("button", { name: `Actions for ${name}`, exact: true }).click();
      await page.getByRole("menuitem", { name: label, exact: true }).click();
      await dialog.waitFor();
    };
    await page.getByRole("button", { name: "Create channel" }).click();
    await dialog.getByLabel("Name").fill(channel);
    await dialog.locator("input[type=password]").first().fill(target.url("/hook"));
    await dialog.getByRole("button", { name: "Create channel" }).click();
    await dialog.waitFor({ state: "detached" });

    await act(channel, "Send test message");
    await dialog.getByRole("button", { name: "Send test message" }).click();
    await dialog.getByText("The channel took the message").waitFor();
    target.says("/hook", 500);
    await dialog.getByRole("button", { name: "Send test message" }).click();
    await dialog.getByText("The channel did not take the message").waitFor();
    await dialog.getByText("It answered with HTTP status 500.").waitFor();
    await dialog.getByRole("button", { name: "Close" }).last().click();
    await dialog.waitFor({ state: "detached" });
    const log = page.getByRole("grid", { name: "Deliveries" });
    await log.getByRole("row").filter({ hasText: channel }).filter({ hasText: "Failed" }).waitFor();

    await act(channel, "Edit");
    await dialog.getByText("Chinese").click();
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    target.says("/hook", 200);
    const tested = await api<{ status: string }>("POST", `/api/v1/alerts/channels/${channel}/test`);
    expect(tested.status, "the URL, which is not shown, is kept").toBe("DELIVERED");

    await page.getByRole("button", { name: "Create rule" }).click();
    await dialog.getByLabel("Name").fill(rule);
    await dialog.getByLabel("Channels").first().click();
    await page.getByRole("option", { name: channel }).click();
    await page.keyboard.press("Tab");
    await dialog.getByRole("button", { name: "Create rule" }).click();
    await dialog.waitFor({ state: "detached" });
    await act(rule, "Disable");
    await dialog.getByRole("button", { name: "Disable" }).click();
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("grid", { name: "Rules" }).getByRole("row").filter({ hasText: rule }).getByText("Disabled").waitFor();
    const stored = await api<{ enabled: boolean; channels: string[]; kind: string }>("GET", `/api/v1/alerts/rules/${rule}`);
    expect(stored).toMatchObject({ enabled: false, channels: [channel], kind: "INSTANCE_DEAD" });
    await visit.expectAccessible();
    await visit.shoot("alerts-filled");

    await act(channel, "Delete");
    await dialog.getByRole("button", { name: "Delete channel" }).click();
    await dialog.getByRole("alert").getByText(rule).first().waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await dialog.waitFor({ state: "detached" });
    await act(rule, "Delete");
    await dialog.getByRole("button", { name: "Delete rule" }).click();
    await dialog.waitFor({ state: "detached" });
    await act(channel, "Delete");
    await dialog.getByRole("button", { name: "Delete channel" }).click();
    await dialog.waitFor({ state: "detached" });
  });
  const { items } = await api<{ items: { name: string }[] }>("GET", "/api/v1/alerts/channels?limit=500");
  expect(items.map((each) => each.name)).not.toContain(channel);
});

test("a silence is created with an expiry and a note, and ended", async () => {
  const note = fresh("ticket");
  const found = async () => {
    const { items } = await api<{ items: { note: string | null; startsAt: string; endsAt: string; tag: string | null }[] }>("GET", "/api/v1/alerts/silences");
    return items.find((each) => each.note === note);
  };
  await visiting({ height: 1400 }, async (visit) => {
    const page = await visit.open("/alerts");
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "Create silence" }).click();
    await dialog.getByLabel("Tag").fill("nothing-has-this");
    await dialog.getByLabel(/^Ends after/).last().fill("3h");
    await dialog.getByLabel("Note").fill(note);
    await dialog.getByRole("button", { name: "Create silence" }).click();
    await dialog.waitFor({ state: "detached" });
    const row = page.getByRole("row").filter({ hasText: note });
    await row.getByText("tag=nothing-has-this").waitFor();
    const silence = await found();
    expect(Date.parse(silence?.endsAt ?? "") - Date.parse(silence?.startsAt ?? "")).toBe(3 * 3_600_000);
    await row.getByRole("button").click();
    await page.getByRole("menuitem", { name: "End silence" }).click();
    await dialog.getByRole("button", { name: "End silence" }).click();
    await row.waitFor({ state: "detached" });
  });
  expect(await found()).toBeUndefined();
});

test("an alert that fires is listed with its job, and is silenced from its row", async () => {
  const [channel, rule, job] = [fresh("hook"), fresh("dead"), fresh("dying")];
  target.says("/broken", 500);
  await api("POST", "/api/v1/alerts/channels", { name: channel, kind: "slack", url: target.url("/chat") });
  await api("POST", "/api/v1/jobs", { name: job, target: { type: "http", url: target.url("/broken") }, retry: { maxRetry: 0 } });
  await api("POST", "/api/v1/alerts/rules", { name: rule, kind: "INSTANCE_DEAD", job, channels: [channel], groupWait: "0s" });
  await api("PUT", `/api/v1/jobs/${job}/instances/one`, { executeTime: new Date().toISOString() });
  await visiting({ height: 1400 }, async (visit) => {
    const page = await visit.open("/alerts");
    const row = page.getByRole("grid", { name: "Firing alerts" }).getByRole("row").filter({ hasText: rule });
    await row.getByText("An instance died").waitFor();
    await row.getByText(job).waitFor();
    await page.getByRole("grid", { name: "Deliveries" }).getByRole("row").filter({ hasText: rule }).getByText("Firing").waitFor();
    await visit.expectAccessible();
    await visit.shoot("alerts-firing");
    await row.getByRole("button").click();
    await page.getByRole("menuitem", { name: "Silence" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Create silence" }).click();
    await page.getByRole("grid", { name: "Silences" }).getByText(`rule=${rule} job=${job}`).waitFor();
  });
  const { items } = await api<{ items: { id: string; rule: string | null }[] }>("GET", "/api/v1/alerts/silences");
  for (const { id } of items.filter((each) => each.rule === rule)) await api("DELETE", `/api/v1/alerts/silences/${id}`);
  await api("DELETE", `/api/v1/alerts/rules/${rule}`);
  await api("DELETE", `/api/v1/alerts/channels/${channel}`);
});
