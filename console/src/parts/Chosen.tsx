import { Button, Group, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import classes from "./Chosen.module.css";

interface ChosenProps {
  count: number;
  onClear: () => void;
  /** What can be done with them. */
  children: ReactNode;
}

/** How many rows are selected, and what can be done with them. */
export function Chosen({ count, onClear, children }: ChosenProps) {
  const { t } = useTranslation();
  if (count === 0) return null;
  return (
    <Group gap="sm" role="status" className={classes.chosen!}>
      <Text size="sm" className="numbers">
        {t("bulk.selected", { number: count })}
      </Text>
      {children}
      <Button size="xs" variant="subtle" onClick={onClear}>
        {t("bulk.clear")}
      </Button>
    </Group>
  );
}
