import { fireEvent, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, test, vi } from "vitest";
import { draw, inLanguage } from "@/testing/render";
import { actsOn, readQuery } from "./palette";
import { openSearch, Search } from "./Search";

const WORDS = { pause: "暂停", resume: "恢复", run: "运行", replay: "重放" };
const FOUND = {
  jobs: [{ id: "1", name: "mail", status: "ACTIVE" }],
  workflows: [],
  instances: [{ id: "7", job: "mail", jobId: "1", key: null, state: "DEAD", fireTime: "2026-11-18T09:00:00Z" }],
};

test("an action is typed before its object, in the language of the page or in English", () => {
  expect(readQuery("pause mail", WORDS)).toEqual({ verb: "pause", text: "mail" });
  expect(readQuery("暂停 mail", WORDS)).toEqual({ verb: "pause", text: "mail" });
  expect(readQuery("pausemail", WORDS)).toEqual({ verb: null, text: "pausemail" });
  expect(readQuery(" pause ", WORDS)).toEqual({ verb: null, text: "pause" });
});

const hrefs = (status: string, state: string) =>
  actsOn({ jobs: [{ name: "a/b", status }], instances: [{ id: "7", key: null, state }] }, null).map((act) => act.href);

test("a paused job can be resumed, another one paused, and only what is dead is replayed", () => {
  expect(hrefs("ACTIVE", "DEAD")).toEqual(["/jobs/a%2Fb?do=trigger", "/jobs/a%2Fb?do=pause", "/instances/7?do=replay"]);
  expect(hrefs("PAUSED", "SUCCESS")).toEqual(["/jobs/a%2Fb?do=trigger", "/jobs/a%2Fb?do=resume"]);
});

beforeEach(() => inLanguage("en"));

/** The palette, open, of a session with a role; `found` is what the server finds. */
function drawPalette(role: string | null) {
  vi.stubGlobal("fetch", async (url: string) =>
    Response.json(url.startsWith("/api/v1/search") ? FOUND : { keyless: role === null, role, tenant: "default", grants: [], name: "k" }),
  );
  const drawn = draw(<Search />);
  openSearch();
  return drawn;
}

test("Enter opens the first result, also when it is pressed before the results are there", async () => {
  const { router } = drawPalette(null);
  const user = userEvent.setup();
  await user.type(await screen.findByRole("textbox"), "mail{Enter}");

  await waitFor(() => expect(router.state.location.pathname).toBe("/jobs/mail"));
});

test("the palette offers actions to an operator, and none to a viewer", async () => {
  const { router, unmount } = drawPalette("operator");
  fireEvent.change(await screen.findByRole("textbox"), { target: { value: "pause mail" } });
  fireEvent.click(await screen.findByRole("button", { name: "Pause mail" }));
  await waitFor(() => expect(router.state.location.href).toBe("/jobs/mail?do=pause"));
  unmount();

  drawPalette("viewer");
  fireEvent.change(await screen.findByRole("textbox"), { target: { value: "mail" } });
  await screen.findByRole("button", { name: "mail" });
  expect(screen.queryByRole("button", { name: /Pause|Run|Replay|New job|Audit/ })).toBeNull();
});
