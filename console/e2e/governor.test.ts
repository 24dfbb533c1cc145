import { test } from "vitest";
import { inAllLooks, pressing } from "./looks";

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
  ]);
});
