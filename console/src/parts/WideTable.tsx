import { Table } from "@mantine/core";
import type { ReactNode } from "react";

/** A table that scrolls sideways where the page is narrower than it, by the keyboard as well. */
export function WideTable({ minWidth, children }: { minWidth: number; children: ReactNode }) {
  return (
    <Table.ScrollContainer minWidth={minWidth} type="native" tabIndex={0}>
      {children}
    </Table.ScrollContainer>
  );
}
