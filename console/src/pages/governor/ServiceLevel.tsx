import { SimpleGrid } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { getServiceLevel } from "@/api";
import { ErrorView, Panel, Stat } from "@/parts";

/** The share of starts within a minute over 30 days, and how much of the error budget is left. */
export function ServiceLevel() {
  const { t, i18n } = useTranslation("governor");
  const level = useQuery({ queryKey: ["governor", "sli"], queryFn: ({ signal }) => getServiceLevel({}, { signal }), refetchInterval: 60_000 });
  const number = new Intl.NumberFormat(i18n.language, { maximumFractionDigits: 2 });
  const percent = new Intl.NumberFormat(i18n.language, { style: "percent", maximumFractionDigits: 3 });
  const shown = level.data;
  return (
    <Panel title={t("sli.title")}>
      <ErrorView error={level.error} onRetry={() => void level.refetch()} />
      {shown && (
        <SimpleGrid cols={{ base: 1, md: 3 }} spacing="md">
          <Stat label={t("sli.share")} value={percent.format(shown.share)} hint={t("sli.shareHint", { count: shown.started, objective: percent.format(shown.objective) })} />
          <Stat
            label={t("sli.budget")}
            value={percent.format(shown.errorBudget.left)}
            hint={t("sli.budgetHint", { spent: number.format(shown.errorBudget.spent), allowed: number.format(shown.errorBudget.allowed) })}
          />
          <Stat label={t("sli.burn")} value={number.format(shown.burnRate)} hint={t("sli.burnHint")} />
        </SimpleGrid>
      )}
    </Panel>
  );
}
