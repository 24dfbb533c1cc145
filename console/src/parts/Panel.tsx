import { Group, Paper, type PaperProps, Title } from "@mantine/core";
import type { ReactNode } from "react";

interface PanelProps extends PaperProps {
  title?: ReactNode;
  /** Beside the title, at the right. */
  aside?: ReactNode;
  children: ReactNode;
}

/** A bordered area with a title. */
export function Panel({ title, aside, children, ...rest }: PanelProps) {
  return (
    <Paper component="section" p="md" {...rest}>
      {(title || aside) && (
        <Group justify="space-between" mb="sm" wrap="nowrap">
          {title && <Title order={2}>{title}</Title>}
          {aside}
        </Group>
      )}
      {children}
    </Paper>
  );
}
