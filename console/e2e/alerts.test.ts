import { afterAll, beforeAll, expect, test } from "vitest";
import { visiting } from "./browser";
import { inAllLooks, pressing, speaker } from "./looks";
import { api, fresh, until } from "./server";
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
    await row.getByRole("button", { name: /^Actions for/ }).click();
    await page.getByRole("menuitem", { name: "Silence" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Create silence" }).click();
    await page.getByRole("grid", { name: "Silences" }).getByText(`rule=${rule} job=${job}`).waitFor();
  });
  const { items } = await api<{ items: { id: string; rule: string | null }[] }>("GET", "/api/v1/alerts/silences");
  for (const { id } of items.filter((each) => each.rule === rule)) await api("DELETE", `/api/v1/alerts/silences/${id}`);
  await api("DELETE", `/api/v1/alerts/rules/${rule}`);
  await api("DELETE", `/api/v1/alerts/channels/${channel}`);
});

test("an alert is acknowledged on a phone of 390 px, and other operators see the note", async () => {
  const [channel, rule, job, note] = [fresh("hook"), fresh("dead"), fresh("dying"), fresh("ticket")];
  target.says("/broken", 500);
  await api("POST", "/api/v1/alerts/channels", { name: channel, kind: "slack", url: target.url("/chat") });
  await api("POST", "/api/v1/jobs", { name: job, target: { type: "http", url: target.url("/broken") }, retry: { maxRetry: 0 } });
  await api("POST", "/api/v1/alerts/rules", { name: rule, kind: "INSTANCE_DEAD", job, channels: [channel], groupWait: "0s" });
  await api("PUT", `/api/v1/jobs/${job}/instances/one`, { executeTime: new Date().toISOString() });
  const found = async () => (await api<{ items: { rule: string; acknowledgedAt: string | null; acknowledgedNote: string | null }[] }>("GET", "/api/v1/alerts")).items.find((each) => each.rule === rule);
  await until(found);
  for (const [language, scheme] of [["zh-CN", "dark"], ["en", "light"]] as const) {
    const say = speaker(language);
    await visiting({ width: 390, height: 844, isAlone: true, language, scheme }, async (visit) => {
      const page = await visit.open("/alerts");
      const row = page.getByRole("grid", { name: say("alerts:firing.title") }).getByRole("row").filter({ hasText: job });
      await row.getByText(say("alerts:kind.INSTANCE_DEAD")).waitFor();
      const button = row.getByRole("button", { name: new RegExp(`^${say("alerts:acknowledge.named", { name: rule })}`) });
      const place = (await button.boundingBox())!;
      expect(place.x + place.width, "it is in sight without a scroll").toBeLessThanOrEqual(390);
      const cell = (await button.locator("xpath=..").boundingBox())!;
      expect(place.x + place.width, "its cell does not cut it").toBeLessThanOrEqual(cell.x + cell.width);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
      await visit.expectAccessible();
      await visit.shoot("alerts-phone");
      await button.click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText(say("alerts:acknowledge.explain")).waitFor();
      await visit.expectAccessible("[role=dialog]");
      await visit.shoot("alerts-phone-acknowledge");
      if (language === "zh-CN") return;
      await dialog.getByLabel("Note").fill(note);
      await dialog.getByRole("button", { name: "Acknowledge" }).click();
      await dialog.waitFor({ state: "detached" });
      await row.getByTitle(note).waitFor();
      await button.waitFor({ state: "detached" });
    });
  }
  expect(await found()).toMatchObject({ acknowledgedNote: note });
  await api("DELETE", `/api/v1/alerts/rules/${rule}`);
  await api("DELETE", `/api/v1/alerts/channels/${channel}`);
});

test("a message of the delivery log is sent again, and its outcome is shown", async () => {
  const channel = fresh("hook");
  target.says("/lost", 500);
  await api("POST", "/api/v1/alerts/channels", { name: channel, kind: "slack", url: target.url("/lost") });
  const failed = await api<{ id: string; status: string }>("POST", `/api/v1/alerts/channels/${channel}/test`);
  expect(failed.status).toBe("FAILED");
  target.says("/lost", 200);
  await visiting({ height: 1400 }, async (visit) => {
    const page = await visit.open("/alerts");
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: `Actions for delivery ${failed.id}`, exact: true }).click();
    await page.getByRole("menuitem", { name: "Send again" }).click();
    await visit.expectAccessible("[role=dialog]");
    await dialog.getByRole("button", { name: "Send again" }).click();
    await dialog.getByText("The channel took the message").waitFor();
    await visit.shoot("alerts-redelivered");
    await dialog.getByRole("button", { name: "Close" }).last().click();
    await dialog.waitFor({ state: "detached" });
    const rows = page.getByRole("grid", { name: "Deliveries" }).getByRole("row").filter({ hasText: channel });
    await rows.filter({ hasText: "Delivered" }).waitFor();
  });
  const { items } = await api<{ items: { redeliveryOf: string | null; status: string }[] }>("GET", `/api/v1/alerts/deliveries?channel=${channel}`);
  expect(items.map(({ redeliveryOf, status }) => [redeliveryOf, status])).toEqual([[failed.id, "DELIVERED"], [null, "FAILED"]]);
  await api("DELETE", `/api/v1/alerts/channels/${channel}`);
});
