import { Skeleton, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { ErrorView, Panel } from "@/parts";
import { needsOf } from "./needs";
import classes from "./overview.module.css";
import { useAttention } from "./stats";

/** What needs somebody, the worst first; nothing is said in words, too. */
export function Attention() {
  const { t } = useTranslation("overview");
  const { data, error, isPending, refetch } = useAttention();
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
      <ul className={classes.list}>{needs}</ul>
    </Panel>
  );
}
