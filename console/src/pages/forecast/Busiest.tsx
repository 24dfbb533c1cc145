import { Stack } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { ForecastOut } from "@/api";
import { Panel } from "@/parts";
import { ScheduleLine } from "./ScheduleLine";

const SHOWN = 10;

/** The schedules with the most fires in all. */
export function Busiest({ forecast }: { forecast: ForecastOut }) {
  const { t } = useTranslation("forecast");
  return (
    <Panel title={t("busiest")}>
      <Stack gap="sm">
        {forecast.busiest.slice(0, SHOWN).map((found) => (
          <ScheduleLine key={JSON.stringify(found.schedule)} found={found} />
        ))}
      </Stack>
    </Panel>
  );
}
