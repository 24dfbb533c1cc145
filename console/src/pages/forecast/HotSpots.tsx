import { Group, Stack, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { ForecastOut, HotSpot } from "@/api";
import { Icon, Panel, When } from "@/parts";
import classes from "./HotSpots.module.css";
import { minuteOf } from "./minutes";
import { ScheduleLine } from "./ScheduleLine";

interface HotSpotsProps {
  forecast: ForecastOut;
  onChoose: (index: number) => void;
}

/** The minutes that stand out, whose they are, and the jitter that would level them. */
export function HotSpots({ forecast, onChoose }: HotSpotsProps) {
  const { t } = useTranslation("forecast");
  return (
    <Panel title={t("hot.title")}>
      {forecast.hotSpots.length === 0 ? (
        <Text size="sm" c="dimmed">
          {t("hot.none")}
        </Text>
      ) : (
        <Stack gap={0}>
          {forecast.hotSpots.map((spot) => (
            <div key={spot.at} className={classes.spot} onPointerEnter={() => onChoose(minuteOf(forecast, spot.at))}>
              <Spot spot={spot} />
            </div>
          ))}
        </Stack>
      )}
    </Panel>
  );
}

function Spot({ spot }: { spot: HotSpot }) {
  const { t } = useTranslation("forecast");
  const rest = spot.concerned.schedules - spot.schedules.length;
  return (
    <Stack gap={6}>
      <Group justify="space-between" wrap="nowrap">
        <Text fw={600} size="sm">
          <When at={spot.at} precision="minute" />
        </Text>
        <Text size="sm" className="numbers">
          <b>{t("fires", { count: spot.fires })}</b>{" "}
          <Text span c="dimmed" size="sm">
            {t("hot.times", { times: spot.times })}
          </Text>
        </Text>
      </Group>
      {spot.schedules.map((found) => (
        <ScheduleLine key={JSON.stringify(found.schedule)} found={found} />
      ))}
      {rest > 0 && (
        <Text size="sm" c="dimmed">
          {t("hot.more", { count: rest })}
        </Text>
      )}
      <Group gap={6} wrap="nowrap" c={spot.suggestedJitter ? "var(--horai-good)" : "dimmed"}>
        <Icon name={spot.suggestedJitter ? "check" : "info"} size={14} />
        <Text size="sm">
          {spot.suggestedJitter
            ? t("hot.jitter", { jitter: spot.suggestedJitter, count: spot.concerned.jobs, peak: spot.peakWithJitter })
            : t("hot.noJitter")}
        </Text>
      </Group>
    </Stack>
  );
}
