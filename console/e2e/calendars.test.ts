import { expect, test } from "vitest";
import { visiting } from "./browser";
import { inAllLooks, pressing } from "./looks";
import { api, fresh } from "./server";

const ICS = ["BEGIN:VCALENDAR", "VERSION:2.0", "BEGIN:VEVENT", "UID:1", "DTSTART;VALUE=DATE:20990102", "SUMMARY:Imported day", "END:VEVENT", "END:VCALENDAR"].join("\r\n");

interface Calendar {
  holidays: { date: string; name: string | null }[];
  workdays: string[];
  weekend: string[];
  hours: Record<string, string> | null;
}

test("calendars are right in both languages and schemes, with their days and dialogs", async () => {
  const name = fresh("looks");
  await api("PUT", `/api/v1/calendars/${name}`, { holidays: [{ date: "01-01", name: "New Year" }], hours: "09:00-18:00" });
  await inAllLooks([
    {
      path: "/calendars",
      shows: async (page, say) => {
        await page.getByRole("button", { name, exact: true }).click();
        await page.getByText(say("calendars:month.title", { name })).waitFor();
        await page.getByText(say("calendars:kind.WORKDAY"), { exact: true }).first().waitFor();
      },
      dialogs: [pressing("calendars:create.act")],
    },
  ]);
  await api("DELETE", `/api/v1/calendars/${name}`);
});

test("a calendar is created with a pasted file, shown by month, changed and deleted in the console", async () => {
  const name = fresh("workdays");
  const year = new Date().getUTCFullYear();
  const calendar = () => api<Calendar>("GET", `/api/v1/calendars/${name}`);
  await visiting({ height: 1200 }, async (visit) => {
    const page = await visit.open("/calendars");
    const dialog = page.getByRole("dialog");
    const act = async (label: string) => {
      await page.getByRole("button", { name: `Actions for ${name}` }).click();
      await page.getByRole("menuitem", { name: label, exact: true }).click();
      await dialog.waitFor();
    };
    const confirm = async (label: string) => {
      await dialog.getByRole("button", { name: label, exact: true }).click();
      await dialog.waitFor({ state: "detached" });
    };
    await page.getByRole("button", { name: "Create calendar" }).click();
    await dialog.getByLabel("Name").fill(name);
    await dialog.getByLabel("Holidays").fill("12-25 Christmas\n2099-10-01/2099-10-07");
    await dialog.getByLabel("Business hours").fill("09:00-12:00,13:00-18:00\nfri 09:00-16:00");
    await dialog.getByLabel("iCalendar file").fill(ICS);
    await dialog.getByLabel("Saturday").uncheck();
    await confirm("Create calendar");
    const stored = await calendar();
    expect(stored.holidays.map(({ date }) => date).toSorted()).toEqual(["12-25", "2099-01-02", "2099-10-01/2099-10-07"]);
    expect(stored).toMatchObject({ weekend: ["sun"], hours: { default: "09:00-12:00,13:00-18:00", fri: "09:00-16:00" } });

    await page.getByRole("button", { name, exact: true }).click();
    const month = page.getByRole("table");
    await month.waitFor();
    for (let left = 12 - (new Date().getUTCMonth() + 1); left > 0; left -= 1) await page.getByRole("button", { name: "Next month" }).click();
    await page.getByRole("table", { name: `December ${year}` }).getByText("Christmas").waitFor();
    await page.getByText("0 jobs follow it.").waitFor();
    await visit.expectAccessible();
    await visit.shoot("calendars-filled");

    await act("Edit");
    await dialog.getByLabel("Make-up working days").fill(`${year}-12-25`);
    await confirm("Save");
    await page.getByRole("cell").filter({ hasText: "Make-up working day" }).waitFor();
    expect((await calendar()).workdays).toEqual([`${year}-12-25`]);
    await act("Delete");
    await confirm("Delete calendar");
    await page.getByRole("row").filter({ hasText: name }).waitFor({ state: "detached" });
  });
  const { items } = await api<{ items: { name: string }[] }>("GET", "/api/v1/calendars?limit=500");
  expect(items.map((each) => each.name)).not.toContain(name);
});

test("hours that cannot be read are refused at their field, and the input stays", async () => {
  await visiting({ mayFail: /status of 422/ }, async (visit) => {
    const page = await visit.open("/calendars");
    await page.getByRole("button", { name: "Create calendar" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill(fresh("wrong"));
    await dialog.getByLabel("Business hours").fill("18:00-09:00");
    await dialog.getByRole("button", { name: "Create calendar" }).click();
    await dialog.locator("textarea[aria-invalid=true]").waitFor();
    expect(await dialog.getByLabel("Business hours").inputValue()).toBe("18:00-09:00");
  });
});
