import { expect, test } from "vitest";
import { visiting } from "./browser";
import { api, fresh } from "./server";

const TITLES = {
  en: ["Overview", "Jobs", "Instances", "Workflows", "Queues & nodes", "Dead letters", "Refresh", "Reconcilers", "Forecast", "Governor", "Incidents", "Alerts", "Events out", "Calendars", "Keys & tenants", "Audit log"],
  "zh-CN": ["总览", "任务", "实例", "工作流", "队列与节点", "死信", "滚动刷新", "对账", "预测", "调控器", "事故", "告警", "事件外发", "日历", "密钥与租户", "审计日志"],
};

test("every page opens from the navigation, in both languages", async () => {
  for (const language of ["en", "zh-CN"] as const) {
    await visiting({ language }, async (visit) => {
      const page = await visit.open("/");
      expect(await page.locator("html").getAttribute("lang")).toBe(language);
      for (const title of TITLES[language]) {
        await page.locator("nav").getByRole("link", { name: title, exact: true }).click();
        await page.getByRole("heading", { level: 1, name: title }).waitFor();
        await visit.settled();
        expect(await page.title()).toBe(`${title} · Horai`);
      }
    });
  }
});

test("language, scheme and zone are chosen in the header and kept", async () => {
  await visiting({}, async (visit) => {
    const page = await visit.open("/");
    await page.getByRole("button", { name: /^Language/ }).click();
    await page.getByRole("menuitem", { name: "中文" }).click();
    await page.getByRole("heading", { level: 1, name: "总览" }).waitFor();
    await page.getByRole("button", { name: "配色" }).click();
    await page.getByRole("menuitem", { name: "深色" }).click();
    await page.getByRole("button", { name: /时区/ }).click();
    await page.getByRole("menuitem", { name: "UTC" }).click();

    await page.reload();
    await page.getByRole("heading", { level: 1, name: "总览" }).waitFor();
    expect(await page.locator("html").getAttribute("data-mantine-color-scheme")).toBe("dark");
    await page.getByRole("button", { name: "时间显示时区：UTC" }).waitFor();
  });
});

test("the search opens by key and leads to pages, jobs and instances", async () => {
  const name = fresh("looked-for");
  await api("POST", "/api/v1/jobs", { name });
  await api("PUT", `/api/v1/jobs/${name}/instances/${name}-key`, { executeTime: "2999-01-01T00:00:00Z" });
  await visiting({}, async (visit) => {
    const page = await visit.open("/");
    const search = async (text: string): Promise<void> => {
      await page.getByRole("dialog").waitFor({ state: "detached" });
      await page.keyboard.press("Control+k");
      await page.getByRole("textbox", { name: /^Search/ }).fill(text);
    };
    await search("forec");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Forecast" }).waitFor();

    await search(name);
    await page.getByRole("button", { name: `${name}-key` }).waitFor();
    await visit.shoot("search");
    await page.getByRole("button", { name, exact: true }).click();
    await page.waitForURL(`**/jobs/${name}`);
    await search(`${name}-k`);
    await page.getByRole("button", { name: `${name}-key` }).click();
    await page.waitForURL(/\/instances\/\d+$/);
  });
});

test("the files of the first screen leave 30 kB of its 300 kB over the wire to the answers of the API", async () => {
  await visiting({ isAlone: true }, async (visit) => {
    const loaded: Promise<number>[] = [];
    visit.page.on("requestfinished", (request) => {
      if (request.url().includes("/api/")) return; // as much as happens on the server: `python -m benchmarks console` counts it
      loaded.push(request.sizes().then((sizes) => sizes.responseBodySize + sizes.responseHeadersSize));
    });
    const page = await visit.open("/");
    await page.getByRole("img", { name: /^Trigger delay/ }).waitFor();
    const total = (await Promise.all(loaded)).reduce((sum, size) => sum + size, 0);
    expect(total).toBeGreaterThan(100_000);
    expect(total).toBeLessThanOrEqual(270_000);
  });
});

test("a page that is not there says so and leads back", async () => {
  await visiting({}, async (visit) => {
    const page = await visit.page;
    await page.goto("/nothing/here");
    await page.getByText("Page not found").waitFor();
    await page.getByRole("link", { name: "Back to overview" }).click();
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  });
});
