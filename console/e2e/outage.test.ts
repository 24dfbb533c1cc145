import { expect, test } from "vitest";
import { visiting } from "./browser";
import { control, until } from "./server";

const AWAY = /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED_ENCODING|status of 503/;

test("C54 C59j while the server is away the console only reads, and goes on when it is back", async () => {
  const base = await control("start");
  await visiting({ mayFail: AWAY, isAlone: true, base }, async (visit) => {
    await visit.page.clock.install();
    const page = await visit.open("/jobs/new");
    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByText("The scheduler is healthy").waitFor();
    const banner = page.getByText("Read-only: the scheduler is not responding");
    /** The waits between two looks grow up to 30 s: they are passed over, the answers are real. */
    const passTime = async (): Promise<void> => page.clock.fastForward(8_000);

    await control("stop");
    await until(async () => passTime().then(() => banner.isVisible()));
    await page.getByText("Several requests in a row failed").waitFor();
    expect(await page.getByText("last 10 minutes").isVisible()).toBe(true);
    await visit.shoot("read-only");
    await page.goBack();
    const create = page.getByRole("button", { name: "Create job" });
    expect(await create.getAttribute("aria-disabled")).toBe("true");

    await control("start");
    await until(async () => passTime().then(async () => !(await banner.isVisible())));
    expect(await create.getAttribute("aria-disabled")).not.toBe("true");
  });
});
