import { act, fireEvent, screen } from "@testing-library/react";
import { beforeEach, expect, test, vi } from "vitest";
import { When } from "@/parts";
import { draw, inLanguage } from "@/testing/render";
import { network } from "@/testing/server";
import { ZoneSwitch } from "./ZoneSwitch";
import { JobZone } from "./zones";

beforeEach(async () => {
  network("");
  await inLanguage("en");
});

const AT = ["2026-11-19T08:00:00Z", "2026-11-19T09:00:00Z", "2026-11-19T10:00:00Z"];

/** Replace the storage for one test, and count the writes to it. */
function countedStorage() {
  const kept = new Map<string, string>();
  const setItem = vi.fn<(name: string, text: string) => void>((name, text) => void kept.set(name, text));
  vi.stubGlobal("localStorage", {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem,
    removeItem: (name: string) => kept.delete(name),
    clear: () => kept.clear(),
  });
  return setItem;
}

test("times in a list write nothing to the storage, and follow the zone that is chosen here or in another tab", async () => {
  const writing = countedStorage();
  draw(
    <>
      <ZoneSwitch />
      {AT.map((at) => (
        <When key={at} at={at} />
      ))}
    </>,
  );
  expect(writing).not.toHaveBeenCalled();

  fireEvent.click(screen.getByRole("button", { name: "Times shown in: Local" }));
  fireEvent.click(await screen.findByRole("menuitem", { name: "UTC" }));
  expect(screen.getByText(/10:00:00/)).toBeTruthy();
  expect(writing).toHaveBeenCalledExactlyOnceWith("horai-zone", "UTC");

  localStorage.setItem("horai-zone", "Asia/Tokyo");
  act(() => void dispatchEvent(new StorageEvent("storage", { key: "horai-zone" })));
  expect(screen.getByText(/19:00:00/)).toBeTruthy();

  localStorage.clear();
  act(() => void dispatchEvent(new StorageEvent("storage", { key: null })));
  screen.getByRole("button", { name: "Times shown in: Local" });
});

test("in the zone of the job, a time is shown in that of its row, or of the page that is about the job", async () => {
  countedStorage();
  draw(
    <>
      <ZoneSwitch />
      <When at={AT[0]!} zone="Europe/Berlin" />
      <JobZone value="Asia/Tokyo">
        <When at={AT[0]!} />
        <When at={AT[0]!} zone="America/New_York" />
      </JobZone>
    </>,
  );
  fireEvent.click(screen.getByRole("button", { name: /^Times shown in/ }));
  fireEvent.click(await screen.findByRole("menuitem", { name: /job/i }));

  for (const shown of [/09:00:00/, /17:00:00/, /03:00:00/]) expect(screen.getByText(shown)).toBeTruthy();
});
