import { expect, test } from "vitest";
import { visiting } from "./browser";

test("two keys lead to a page, a question mark shows which, and a field keeps its letters", async () => {
  await visiting({}, async (visit) => {
    const page = await visit.open("/");
    await page.keyboard.press("g");
    await page.keyboard.press("j");
    await page.getByRole("heading", { level: 1, name: "Jobs" }).waitFor();
    await page.keyboard.press("?");
    const keys = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    await keys.getByText("Dead letters").waitFor();
    await visit.expectAccessibleInBothSchemes();
    await page.keyboard.press("Escape");
    await keys.waitFor({ state: "detached" });
    await page.getByRole("textbox", { name: "Name or title contains" }).pressSequentially("gi");
    expect(new URL(page.url()).pathname).toBe("/jobs");
    await page.getByRole("heading", { level: 1 }).click();
    await page.keyboard.press("n");
    await page.keyboard.press("w");
    await page.getByRole("heading", { level: 1, name: "New workflow" }).waitFor();
  });
});
