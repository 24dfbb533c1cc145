import { afterAll, beforeAll, expect, test } from "vitest";
import { visiting } from "./browser";
import { inAllLooks, pressing } from "./looks";
import { api, fresh, until } from "./server";
import { Target } from "./target";

interface Sink {
  status: string;
  delivered: number;
  types: string[] | null;
}

let target: Target;

beforeAll(async () => {
  target = await Target.start();
});

afterAll(() => target.stop());

test("events out are right in both languages and schemes, with their dialogs", async () => {
  await inAllLooks([{ path: "/sinks", shows: async (page, say) => page.getByText(say("sinks:lead")).waitFor(), dialogs: [pressing("sinks:create.act")] }]);
});

test("a sink is created, gets an event, is paused, resumed, replayed and deleted in the console", async () => {
  const [name, job] = [fresh("monitoring"), fresh("eventful")];
  const sink = () => api<Sink>("GET", `/api/v1/sinks/${name}`);
  await visiting({}, async (visit) => {
    const page = await visit.open("/sinks");
    const dialog = page.getByRole("dialog");
    const row = page.getByRole("row").filter({ hasText: name });
    const act = async (label: string) => {
      await page.getByRole("button", { name: `Actions for ${name}` }).click();
      await page.getByRole("menuitem", { name: label, exact: true }).click();
      await dialog.waitFor();
    };
    const confirm = async (label: string) => {
      await dialog.getByRole("button", { name: label, exact: true }).click();
      await dialog.waitFor({ state: "detached" });
    };
    await page.getByRole("button", { name: "Create sink" }).click();
    await dialog.getByLabel("Name").fill(name);
    await dialog.getByLabel("URL").fill(target.url("/events"));
    await dialog.getByLabel("Headers").fill("X-Token: hush");
    await confirm("Create sink");
    await row.getByText("Active").waitFor();

    await api("POST", "/api/v1/jobs", { name: job, target: { type: "http", url: target.url("/work") } });
    await api("PUT", `/api/v1/jobs/${job}/instances/one`, { executeTime: new Date().toISOString() });
    await until(async () => (await sink()).delivered > 0);

    await act("Edit");
    await dialog.getByLabel("Types of events").first().fill("horai.instance.done");
    await page.keyboard.press("Enter");
    await confirm("Save");
    expect((await sink()).types).toEqual(["horai.instance.done"]);
    await act("Pause");
    await dialog.getByLabel("Note").fill("upgrade");
    await confirm("Pause sink");
    await row.getByText("Paused").waitFor();
    expect((await sink()).status).toBe("PAUSED");
    await visit.expectAccessible();
    await visit.shoot("sinks-filled");
    await act("Resume");
    await confirm("Resume sink");
    await row.getByText("Active").waitFor();

    await act("Replay");
    await dialog.getByRole("button", { name: "Replay events" }).click();
    await dialog.getByText(/^\d+ events? (is|are) sent again\.$/).waitFor();
    await visit.expectAccessible("[role=dialog]");
    await dialog.getByRole("button", { name: "Close" }).last().click();
    await dialog.waitFor({ state: "detached" });
    await act("Delete");
    await confirm("Delete sink");
    await row.waitFor({ state: "detached" });
  });
  const { items } = await api<{ items: { name: string }[] }>("GET", "/api/v1/sinks?limit=500");
  expect(items.map((each) => each.name)).not.toContain(name);
});

test("a sink that exists is not overwritten by a new one of its name", async () => {
  const name = fresh("taken");
  await api("PUT", `/api/v1/sinks/${name}`, { kind: "log" });
  await visiting({ mayFail: /status of 412/ }, async (visit) => {
    const page = await visit.open("/sinks");
    await page.getByRole("button", { name: "Create sink" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill(name);
    await page.getByRole("dialog").getByLabel("URL").fill(target.url("/events"));
    await page.getByRole("dialog").getByRole("button", { name: "Create sink" }).click();
    await page.getByRole("dialog").getByRole("alert").waitFor();
  });
  expect(await api("GET", `/api/v1/sinks/${name}`)).toMatchObject({ kind: "log", version: 1 });
  await api("DELETE", `/api/v1/sinks/${name}`);
});
