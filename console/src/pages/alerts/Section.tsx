import { Group, Title } from "@mantine/core";
import type { ReactNode } from "react";

/** A list of the page with its title; `aside` has its controls. */
export function Section({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  return (
    <section>
      <Group justify="space-between" mb="sm">
        <Title order={2}>{title}</Title>
        <Group gap="xs">{aside}</Group>
      </Group>
      {children}
    </section>
  );
}
