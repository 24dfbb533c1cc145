import { expect, test } from "vitest";
import { visiting } from "./browser";
import { reportOf } from "./drills";
import { inAllLooks, pressing } from "./looks";
import { api, fresh, until } from "./server";

test("C29 the governor is right in both languages and schemes, with its dialogs", async () => {
  await inAllLooks([
    {
      path: "/governor",
      shows: async (page, say) => {
        await page.getByText("RETRY_SHORT_FIRST").waitFor();
        await page.getByText(say("governor:modes.noAction")).waitFor();
      },
      dialogs: [pressing("governor:holds.hold.low-priority"), pressing("governor:holds.hold.dispatch"), pressing("governor:thresholds.edit")],
    },
    { path: "/drills", shows: async (page, say) => page.getByText(say("drills:lead")).waitFor() },
    { path: "/incidents", shows: async (page, say) => page.getByText(say("incidents:lead")).waitFor(), dialogs: [pressing("incidents:open.act")] },
  ]);
});

test("C33 an incident is opened, noted and closed in the console", async () => {
  const title = fresh("provider down");
  await visiting({}, async (visit) => {
    const page = await visit.open("/incidents");
    await page.getByRole("button", { name: "Open incident" }).click();
    await page.getByLabel("Title").fill(title);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Open incident" }).click();
    await page.getByText("Your unsaved draft was restored.").waitFor();
    expect(await page.getByLabel("Title").inputValue()).toBe(title);
    await page.getByRole("dialog").getByRole("button", { name: "Open incident" }).click();
    await page.getByRole("row").filter({ hasText: title }).getByText("Open", { exact: true }).waitFor();
    await page.getByRole("button", { name: `Actions for ${title}` }).click();
    await page.getByRole("menuitem", { name: "Show timeline" }).click();
    await page.getByRole("dialog").getByLabel("Note").fill("ticket 4711");
    await page.getByRole("button", { name: "Add note", exact: true }).click();
    await page.getByRole("dialog").getByText("ticket 4711").waitFor();
    await page.getByRole("button", { name: "Close incident", exact: true }).click();
    await page.getByRole("dialog").getByText("Closed").waitFor();
  });
  const { items } = await api<{ items: { title: string; closedAt: string | null }[] }>("GET", "/api/v1/incidents");
  expect(items.find((each) => each.title === title)?.closedAt).toBeTruthy();
});

test("C63 the report of a drill is filed by the command line's JSON and read in the console", async () => {
  const cluster = fresh("shop db");
  await api("POST", "/api/v1/drills", reportOf(cluster));
  await visiting({}, async (visit) => {
    const page = await visit.open("/drills?kind=primary");
    await page.getByRole("row").filter({ hasText: cluster }).getByRole("link").click();
    await page.getByRole("heading", { level: 1, name: "Drill: loss of the primary" }).waitFor();
    await page.getByText("Broken").waitFor();
    await page.getByRole("row", { name: "recovery time (RTO)" }).getByText("21.40 s").waitFor();
    await page.getByText("instances 17, 19").waitFor();
    await visit.settled();
    await visit.expectAccessibleInBothSchemes();
    await visit.shoot("drill");
  });
});

test("a freeze by hand is named with its note, and leads to the governor", async () => {
  const note = fresh("sale");
  await api("POST", "/api/v1/scheduler/freeze", { what: "low-priority", note });
  try {
    await until(async () => {
      const { holds } = await api<{ holds: { note: string | null }[] }>("GET", "/api/v1/scheduler/attention");
      return holds.some((hold) => hold.note === note);
    });
    await visiting({}, async (visit) => {
      const page = await visit.open("/");
      const more = page.getByRole("button", { name: /^\d+ more$/ });
      if (await more.isVisible()) await more.click();
      const line = page.getByRole("listitem").filter({ hasText: note });
      await line.getByRole("link", { name: "Low-priority work is frozen" }).click();
      await page.getByRole("heading", { level: 1, name: "Governor" }).waitFor();
    });
  } finally {
    await api("POST", "/api/v1/scheduler/unfreeze", { what: "low-priority" });
  }
});
