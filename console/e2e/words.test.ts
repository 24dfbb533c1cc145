import { expect, test } from "vitest";
import { BASE, visiting } from "./browser";
import { api, fresh } from "./server";

const TARGET = { type: "http", url: `${BASE}/healthz`, method: "GET" };
/** A sentence of English, not a name, a code or a time. */
const ENGLISH = /[a-z]{2,} [a-z]{2,} [a-z]{2,}/;

test("what the server explains is said in Chinese: a slot, why an instance waits, a clock change", async () => {
  const name = fresh("words");
  await api("POST", "/api/v1/jobs", { name, cron: "30 2 * * *", timezone: "Europe/Berlin", target: TARGET, jitter: "1h" });
  await api("POST", `/api/v1/jobs/${name}/pause`, {});
  const put = await api<{ instance: { id: string } }>("PUT", `/api/v1/jobs/${name}/instances/a`, { executeTime: "2999-01-01T00:00:00Z" });
  await visiting({ language: "zh-CN" }, async (visit) => {
    const page = await visit.open(`/jobs/${name}?at=2027-03-28T02:30`); // on the clocks of the job
    const told = page.getByText(/2027-03-28 没有 02:30：时钟从 02:00 跳到 03:00，触发点移到跳变之后。任务已暂停/);
    await told.waitFor();
    expect(await told.innerText()).not.toMatch(ENGLISH);
    await visit.shoot("words-explain");

    await visit.open(`/instances/${put.instance.id}`);
    await page.getByText(/任务已暂停（自 .* 起）。/).waitFor();
    await page.getByText(/还有 \d+ 天 到执行时间。/).waitFor();
    await visit.shoot("words-why");
  });
});

test("what is wrong with a form is said in Chinese, at its field", async () => {
  await visiting({ language: "zh-CN", mayFail: /422/ }, async (visit) => {
    const page = await visit.open("/jobs/new");
    await page.getByLabel("Cron 表达式").fill("61 * * * *");
    await page.getByText("分 61 超出范围").waitFor();
    await page.getByLabel("Cron 表达式").fill("0 9 * * *");
    await page.getByLabel("名称", { exact: true }).fill("12345");
    await page.getByLabel("URL").fill("ftp://nowhere");
    await page.getByText("请加上字母：纯数字的名称会与编号混淆。", { exact: true }).waitFor();
    await page.getByText("请填写地址，例如 https://example.com/path。", { exact: true }).waitFor();
    await visit.shoot("words-form");
  });
});
