import { cleanup, fireEvent, screen, waitFor } from "@testing-library/react";
import { beforeEach, expect, test, vi } from "vitest";
import { clearDrafts } from "@/parts";
import { answers, network } from "@/testing/server";
import { draw, inLanguage } from "@/testing/render";
import { CreateKey } from "./access/CreateKey";
import { GroupForm } from "./access/GroupForm";
import { ChannelForm } from "./alerts/ChannelForm";
import { SilenceForm } from "./alerts/SilenceForm";
import { CalendarForm } from "./calendars/CalendarForm";
import { Incident } from "./incidents/Incident";
import { IncidentForm } from "./incidents/IncidentForm";
import { QueueForm } from "./queues/QueueForm";
import { SecretForm } from "./secrets/SecretForm";

beforeEach(async () => {
  clearDrafts();
  network("", answers({ items: [] }));
  await inLanguage("en", "access", "alerts", "calendars", "incidents", "queues", "secrets");
});

const close = vi.fn<() => void>();
const kept = (): string => JSON.stringify(Object.entries(sessionStorage));

async function type(label: string, value: string): Promise<void> {
  fireEvent.change(await screen.findByLabelText(new RegExp(`^${label}`), { selector: "input:not([type=radio]), textarea" }), { target: { value } });
}

const shown = async (label: string): Promise<string> => (await screen.findByLabelText<HTMLInputElement>(new RegExp(`^${label}`))).value;

/** Draws a form, fills it, leaves it, and draws it again. */
async function left(form: () => React.ReactElement, fill: () => Promise<void>): Promise<void> {
  const first = draw(form());
  await fill();
  first.unmount();
  draw(form());
  await screen.findByText("Your unsaved draft was restored.");
}

test("a queue that was half filled comes back, its faults stand at their fields while it is typed, and the draft is discarded", async () => {
  await left(() => <QueueForm queue="new" onClose={close} />, async () => {
    await type("Name", "my reports");
    await screen.findByText(/^Use letters, digits, dots/);
    await type("Rate", "soon");
    await screen.findByText(/^Use a rate such as/);
    await type("Name", "reports");
  });
  expect(await shown("Name")).toBe("reports");
  fireEvent.click(screen.getByRole("button", { name: "Discard draft" }));
  await waitFor(async () => expect(await shown("Name")).toBe(""));
  expect(kept()).not.toContain("reports");
});

test("the value of a secret is in no draft, and its name is", async () => {
  await left(
    () => <SecretForm opened replaced={null} onClose={close} />,
    async () => {
      await type("Name", "shop token");
      await screen.findByText(/^Use letters, digits, dots/);
      await type("Name", "shop_token");
      await type("Value", "hunter2");
    },
  );
  expect([await shown("Name"), await shown("Value")]).toEqual(["shop_token", ""]);
  expect(kept()).not.toContain("hunter2");
});

test("the address and the secret of a channel are in no draft", async () => {
  await left(
    () => <ChannelForm opened changed={null} onClose={close} />,
    async () => {
      await type("Name", "on-call");
      await type("URL", "example.com");
      await screen.findByText(/^Use an address such as/);
      await type("URL", "https://hooks.example/T0KEN");
      await type("Secret", "hunter2");
    },
  );
  expect([await shown("Name"), await shown("URL")]).toEqual(["on-call", ""]);
  expect(kept()).not.toMatch(/T0KEN|hunter2/);
});

test("a calendar, a silence and a new key that were half filled come back", async () => {
  await left(
    () => <CalendarForm opened changed={null} onClose={close} />,
    async () => {
      await type("Name", "china");
      await type("Holidays", "1 October");
      await screen.findByText(/^Use dates such as/);
    },
  );
  expect(await shown("Holidays")).toBe("1 October");
  cleanup();
  await left(
    () => <SilenceForm opened of={{}} onClose={close} />,
    async () => {
      await type("Note", "maintenance");
      await type("Ends after", "soon");
      await screen.findByText(/^Use a duration such as/);
    },
  );
  expect(await shown("Note")).toBe("maintenance");
  cleanup();
  await left(() => <CreateKey opened onClose={close} />, () => type("Name", "deploy"));
  expect(await shown("Name")).toBe("deploy");
});

test("a role for a group and an incident that were half filled come back", async () => {
  await left(() => <GroupForm opened onClose={close} />, async () => {
    await type("Group", "staff");
    await type("Tenant", "shop");
  });
  expect([await shown("Group"), await shown("Tenant")]).toEqual(["staff", "shop"]);
  cleanup();
  await left(() => <IncidentForm opened onClose={close} />, async () => {
    fireEvent.click(await screen.findByText(/^P1:/));
    await type("Title", "the bank is down");
    await type("Note", "ticket 4711");
  });
  expect([await shown("Title"), await shown("Note")]).toEqual(["the bank is down", "ticket 4711"]);
  expect((await screen.findByLabelText<HTMLInputElement>(/^P1:/)).checked).toBe(true);
});

test("a note on an incident that was half written comes back at this incident alone", async () => {
  const incident = { title: "bank", severity: "P2", cause: "MANUAL", openedAt: "2026-11-19T08:00:00Z", closedAt: null, timeline: [] };
  network("/api/v1/incidents/1", answers({ ...incident, id: "1" }));
  await left(() => <Incident id="1" onClose={close} />, () => type("Note", "the bank answers"));
  expect(await shown("Note")).toBe("the bank answers");
  cleanup();
  network("/api/v1/incidents/2", answers({ ...incident, id: "2" }));
  draw(<Incident id="2" onClose={close} />);
  expect(await shown("Note")).toBe("");
});
