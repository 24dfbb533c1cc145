import { expect, test } from "vitest";
import { visiting } from "./browser";
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
    { path: "/incidents", shows: async (page, say) => page.getByText(say("incidents:lead")).waitFor(), dialogs: [pressing("incidents:open.act")] },
  ]);
});

test("C33 an incident is opened, noted and closed in the console", async () => {
  const title = fresh("provider down");
  await visiting({}, async (visit) => {
    const page = await visit.open("/incidents");
    await page.getByRole("button", { name: "Open incident" }).click();
    await page.getByLabel("Title").fill(title);
    await page.getByRole("dialog").getByRole("button", { name: "Open incident" }).click();
    await page.getByRole("row").filter({ hasText: title }).getByText("Open", { exact: true }).waitFor();
    await page.getByRole("button", { name: `Actions for ${title}` }).click();
    await page.getByRole("menuitem", { name: "Show timeline" }).click();
    await page.getByRole("dialog").getByLabel("Note").fill("ticket 4711");
    await page.getByRole("button", { name: "Add note" }).click();
    await page.getByRole("dialog").getByText("ticket 4711").waitFor();
    await page.getByRole("button", { name: "Close incident" }).click();
    await page.getByRole("dialog").getByText("Closed").waitFor();
  });
  const { items } = await api<{ items: { title: string; closedAt: string | null }[] }>("GET", "/api/v1/incidents");
  expect(items.find((each) => each.title === title)?.closedAt).toBeTruthy();
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
