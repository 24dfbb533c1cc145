import { Skeleton, Text } from "@mantine/core";
import type { ReactNode } from "react";

interface FigureProps {
  label: string;
  /** Undefined while it is on its way. */
  value: ReactNode | undefined;
  hint?: ReactNode;
  isBad?: boolean;
}

/** A number among others in one panel. */
export function Figure({ label, value, hint, isBad = false }: FigureProps) {
  return (
    <div style={{ minWidth: 0 }}>
      <Text size="sm" c="dimmed">
        {label}
      </Text>
      {value === undefined ? (
        <Skeleton height={28} width="50%" mt={4} />
      ) : (
        <Text className="numbers" fz={22} lh="32px" fw={600} c={isBad ? "var(--horai-bad)" : undefined} truncate>
          {value}
        </Text>
      )}
      <Text size="xs" c="dimmed" mih={18} lineClamp={2} style={{ overflowWrap: "anywhere" }}>
        {hint}
      </Text>
    </div>
  );
}
