import { Group } from "@mantine/core";
import type { ReactNode } from "react";
import { Icon } from "./Icon";

/** Before a page's title: the way back up, as links. */
export function Crumb({ children }: { children: ReactNode }) {
  return (
    <Group gap={4} mb={4} fz="sm" c="dimmed" component="nav" wrap="nowrap">
      <Icon name="left" size={14} />
      {children}
    </Group>
  );
}
