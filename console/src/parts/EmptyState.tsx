import { Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Command } from "./Command";
import { Icon, type IconName } from "./Icon";

interface EmptyStateProps {
  icon: IconName;
  title: string;
  /** What would stand here, and how it comes to be. */
  children?: ReactNode;
  /** A command to try. */
  command?: string;
  action?: ReactNode;
}

/** Nothing is here yet; this says what would be and how to begin. */
export function EmptyState({ icon, title, children, command, action }: EmptyStateProps) {
  return (
    <Stack align="center" gap="sm" py={48} px="md" ta="center">
      <Text c="dimmed" lh={1}>
        <Icon name={icon} size={32} />
      </Text>
      <Text fw={600}>{title}</Text>
      {children && (
        <Text c="dimmed" size="sm" maw="36rem" component="div">
          {children}
        </Text>
      )}
      {command && (
        <div style={{ width: "100%", maxWidth: "40rem" }}>
          <Command text={command} />
        </div>
      )}
      {action}
    </Stack>
  );
}
