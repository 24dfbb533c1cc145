import { expect, test } from "vitest";
import { visiting } from "./browser";
import { control } from "./server";
import { staysTooWide } from "./widths";

test("a day of the archive is found, read, restored into a table and removed from it", async () => {
  const [base = "", day = ""] = (await control("archive")).split(" ");
  await visiting({ base, isAlone: true }, async (visit) => {
    const page = await visit.open("/archive");
    await page.getByRole("link", { name: day }).waitFor();
    await visit.settled();
    await visit.expectAccessibleInBothSchemes();
    await visit.shoot("archive");

    await page.getByRole("button", { name: `Actions for Instances of ${day}` }).click();
    await page.getByRole("menuitem", { name: "Restore into a table" }).click();
    const restoring = page.getByRole("dialog", { name: `Restore the instances of ${day}?` });
    await restoring.getByText("25 instances will be restored.").waitFor();
    await page.getByRole("menu").waitFor({ state: "detached" });
    await visit.expectAccessible();
    await restoring.getByRole("button", { name: "Restore" }).click();
    await restoring.getByText("25 instances are in horai.restored_instance.").waitFor();
    await restoring.getByRole("button", { name: "Close" }).last().click();
    await page.getByRole("button", { name: `Actions for Instances of ${day}` }).click();
    await page.getByRole("menuitem", { name: "Remove restored instances" }).click();
    const removing = page.getByRole("dialog", { name: `Remove the restored instances of ${day}?` });
    await removing.getByRole("button", { name: "Remove" }).click();
    await removing.waitFor({ state: "detached" });
    const removed = await fetch(`${base}/api/v1/archive/restored/${day}`, { method: "DELETE" });
    expect(await removed.json()).toMatchObject({ rows: 25, restored: 0 });

    await page.getByRole("link", { name: day }).click();
    await page.getByRole("gridcell", { name: "key-25", exact: true }).waitFor();
    await visit.settled();
    expect(await page.getByRole("grid").getByRole("row").count()).toBeGreaterThan(10);
    await visit.expectAccessible();
    await visit.shoot("archive-instances");
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 844 });
      await visit.painted();
      expect(await staysTooWide(page), `${width} px`).toEqual([]);
    }
    await page.getByLabel("Key begins with").fill("key-7");
    await page.getByRole("gridcell", { name: "key-25", exact: true }).waitFor({ state: "detached" });
    await page.getByRole("gridcell", { name: "key-7", exact: true }).waitFor();
    await page.goto(`${base}/archive/instances`);
    await page.getByText("Choose a range").waitFor();
  });
});
