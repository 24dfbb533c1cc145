import { beforeAll, expect, test } from "vitest";
import { BASE, visiting } from "./browser";
import { inAllLooks, type Showing } from "./looks";
import { api, fresh } from "./server";

const TARGET = { type: "http", url: `${BASE}/healthz`, method: "GET" };
const known = fresh("versions");

/** The dialog of an older version. */
const pressed: Showing = async (page, say) => {
  await page.getByRole("button", { name: say("definitions:history.openLabel", { act: say("definitions:history.open"), version: "1" }) }).click();
  await page.getByRole("dialog").getByText(say("definitions:history.changed")).waitFor();
};

interface JobSeen {
  title?: string;
  cron?: string;
  queue: string;
  version: number;
}

beforeAll(async () => {
  await api("POST", "/api/v1/jobs", { name: known, target: TARGET, cron: "0 9 * * *", title: "日报" });
  await api("PATCH", `/api/v1/jobs/${known}`, { cron: "0 10 * * *", payload: { n: 1 } });
});

test("the page of definitions and the history of a job are right in both languages and both schemes", async () => {
  await inAllLooks([{ path: "/definitions" }, { path: `/jobs/${known}`, dialogs: [pressed] }]);
});

test("a version is compared with now, and restored", async () => {
  await visiting({}, async (visit) => {
    const page = await visit.open(`/jobs/${known}`);
    await page.getByRole("button", { name: "Compare: version 1" }).click();
    await page.getByRole("button", { name: "Compare with now" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("What restoring it would change now").waitFor();
    await dialog.getByText("0 10 * * *").first().waitFor();
    await dialog.getByRole("button", { name: "Restore version 1" }).click();
    await page.getByText(`${known} is what it was at version 1`).waitFor();
    await page.getByRole("button", { name: "Current: version 3" }).waitFor();
  });
  expect((await api<JobSeen>("GET", `/api/v1/jobs/${known}`)).cron).toBe("0 9 * * *");
});

test("a change of a job is shown before it is saved, and nothing is saved until then", async () => {
  const name = fresh("reviewed");
  await api("POST", "/api/v1/jobs", { name, target: TARGET, cron: "0 9 * * *" });
  await visiting({}, async (visit) => {
    const page = await visit.open(`/jobs/${name}/edit`);
    await page.getByLabel("Cron expression").fill("0 11 * * *");
    await page.getByRole("button", { name: "Save changes" }).click();
    const dialog = page.getByRole("dialog", { name: "Review the changes" });
    await dialog.getByText("0 11 * * *").waitFor();
    await dialog.getByText("Slots from now on follow the new schedule.").waitFor();
    expect((await api<JobSeen>("GET", `/api/v1/jobs/${name}`)).version).toBe(1);
    await dialog.getByRole("button", { name: "Save these changes" }).click();
    await page.waitForURL(`${BASE}/jobs/${name}`);
  });
  expect((await api<JobSeen>("GET", `/api/v1/jobs/${name}`)).cron).toBe("0 11 * * *");
});

test("YAML is checked at its lines, applied, and what is exported would change nothing", async () => {
  const name = fresh("yaml");
  await visiting({}, async (visit) => {
    const page = await visit.open(`/definitions`);
    const editor = page.getByLabel("Definitions as YAML");
    await editor.fill(`kind: job\nname: ${name}\n\ncron: 0 99 * * *\n`);
    await page.getByRole("button", { name: "Check", exact: true }).click();
    await page.getByText("would be refused").waitFor();
    await page.getByText("Line 4:").waitFor();
    await editor.fill("kind: job\nname: [x\n");
    await page.getByText("Line 3:").waitFor();
    await editor.fill(`kind: job\nname: ${name}\ncron: 0 9 * * *\ntitle: 夜间对账\n`);
    await page.getByRole("button", { name: "Check", exact: true }).click();
    await page.getByText("would be created").waitFor();
    await page.getByRole("button", { name: "Apply", exact: true }).click();
    await page.getByText("What happened").waitFor();

    await visit.open(`/definitions?kind=job&name=${name}`);
    await expect.poll(async () => editor.inputValue(), { timeout: 10_000 }).toContain("夜间对账");
    await page.getByRole("button", { name: "Check", exact: true }).click();
    await page.getByText("unchanged").waitFor();
  });
  expect(await api<JobSeen>("GET", `/api/v1/jobs/${name}`)).toMatchObject({ title: "夜间对账", version: 1 });
});
