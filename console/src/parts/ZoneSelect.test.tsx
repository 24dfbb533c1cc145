import { screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { useState } from "react";
import { expect, test, vi } from "vitest";
import { draw } from "@/testing/render";
import { ZoneSelect } from "./ZoneSelect";

function Form({ onSubmit }: { onSubmit: () => void }) {
  const [zone, setZone] = useState("Asia/Shanghai");
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    >
      <ZoneSelect label="zone" value={zone} onChange={setZone} />
      <output>{zone}</output>
      <button type="submit">create</button>
    </form>
  );
}

test("typing a city and pressing Enter chooses its zone and does not submit the form", async () => {
  const submitted = vi.fn<() => void>();
  draw(<Form onSubmit={submitted} />);
  const input = screen.getByLabelText<HTMLInputElement>("zone", { selector: "input" });

  await userEvent.click(input);
  await userEvent.keyboard("Berlin{Enter}");

  expect(screen.getByRole("status").textContent).toBe("Europe/Berlin");
  expect(submitted).not.toHaveBeenCalled();
});

test("pressing Enter after a text that matches no zone keeps the old zone and does not submit the form", async () => {
  const submitted = vi.fn<() => void>();
  draw(<Form onSubmit={submitted} />);
  const input = screen.getByLabelText<HTMLInputElement>("zone", { selector: "input" });

  await userEvent.click(input);
  await userEvent.keyboard("Atlantis{Enter}");
  await userEvent.keyboard("{Enter}");

  expect(screen.getByRole("status").textContent).toBe("Asia/Shanghai");
  expect(submitted).not.toHaveBeenCalled();
});
