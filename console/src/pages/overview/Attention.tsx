import { Button, Skeleton, Text } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { ErrorView, Panel } from "@/parts";
import { needsOf } from "./needs";
import classes from "./overview.module.css";
import { useAttention } from "./stats";

const FEW = 6;

/** What needs somebody, the worst first; that nothing does is said, too. */
export function Attention() {
  const { t } = useTranslation("overview");
  const { data, error, isPending, refetch } = useAttention();
  const [isOpen, open] = useState(false);
  const needs = data ? needsOf(data) : [];
  return (
    <Panel title={t("attention.title")} aside={needs.length > 0 && <Text size="sm" c="dimmed" className="numbers">{needs.length}</Text>}>
      <ErrorView error={error} onRetry={() => void refetch()} />
      {isPending && <Skeleton height={160} />}
      {data && needs.length === 0 && (
        <Text size="sm" c="dimmed">
          {t("attention.nothing")}
        </Text>
      )}
      <ul className={classes.list}>{isOpen ? needs : needs.slice(0, FEW)}</ul>
      {needs.length > FEW && (
        <Button variant="subtle" size="compact-sm" mt="xs" ml={-8} onClick={() => open(!isOpen)} aria-expanded={isOpen}>
          {isOpen ? t("attention.fewer") : t("attention.more", { count: needs.length - FEW })}
        </Button>
      )}
    </Panel>
  );
}
