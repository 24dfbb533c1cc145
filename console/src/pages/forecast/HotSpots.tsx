import { Collapse, Group, Stack, Text, UnstyledButton } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { ForecastOut, HotSpot } from "@/api";
import { Act, Icon, Panel, When } from "@/parts";
import { ApplyJitter } from "./ApplyJitter";
import classes from "./HotSpots.module.css";
import { ScheduleLine } from "./ScheduleLine";

interface HotSpotsProps {
  forecast: ForecastOut;
  onChoose: (at: string) => void;
}

/** The minutes that stand out, a line each; whose they are, and the jitter that would level them, when one is opened. */
export function HotSpots({ forecast, onChoose }: HotSpotsProps) {
  const { t } = useTranslation("forecast");
  const [open, setOpen] = useState(forecast.hotSpots[0]?.at ?? null);
  const [spread, setSpread] = useState<HotSpot | null>(null);
  const toggle = (spot: HotSpot): void => {
    setOpen(open === spot.at ? null : spot.at);
    onChoose(spot.at);
  };
  return (
    <Panel title={t("hot.title")}>
      {forecast.hotSpots.length === 0 && (
        <Text size="sm" c="dimmed">
          {t("hot.none")}
        </Text>
      )}
      {forecast.hotSpots.map((spot) => (
        <div key={spot.at} className={classes.spot}>
          <Headline spot={spot} isOpen={open === spot.at} onToggle={() => toggle(spot)} />
          <Collapse expanded={open === spot.at}>
            <Details spot={spot} onSpread={() => setSpread(spot)} />
          </Collapse>
        </div>
      ))}
      {spread && <ApplyJitter spot={spread} onClose={() => setSpread(null)} />}
    </Panel>
  );
}

function Headline({ spot, isOpen, onToggle }: { spot: HotSpot; isOpen: boolean; onToggle: () => void }) {
  const { t } = useTranslation("forecast");
  return (
    <UnstyledButton className={classes.headline} onClick={onToggle} aria-expanded={isOpen}>
      <Icon name={isOpen ? "down" : "right"} size={14} />
      <Text span size="sm" fw={600} className="numbers">
        <When at={spot.at} precision="minute" />
      </Text>
      <Text span size="sm" className="numbers" ta="right">
        {t("fires", { count: spot.fires })}
      </Text>
      <Text span size="sm" c="dimmed" className="numbers" ta="right">
        {t("hot.times", { times: spot.times })}
      </Text>
      <Text span size="sm" c={spot.suggestedJitter ? "var(--horai-good)" : "dimmed"} truncate>
        {spot.suggestedJitter ? t("hot.helps", { jitter: spot.suggestedJitter, peak: spot.peakWithJitter }) : t("hot.helpless")}
      </Text>
    </UnstyledButton>
  );
}

function Details({ spot, onSpread }: { spot: HotSpot; onSpread: () => void }) {
  const { t } = useTranslation("forecast");
  const rest = spot.concerned.schedules - spot.schedules.length;
  return (
    <Stack gap={8} className={classes.details}>
      {spot.schedules.map((found) => (
        <ScheduleLine key={JSON.stringify(found.schedule)} found={found} />
      ))}
      {rest > 0 && (
        <Text size="sm" c="dimmed">
          {t("hot.more", { count: rest })}
        </Text>
      )}
      <Group justify="space-between" gap="md">
        <Text size="sm" c="dimmed" flex={1}>
          {spot.suggestedJitter
            ? t("hot.jitter", { jitter: spot.suggestedJitter, count: spot.concerned.jobs, peak: spot.peakWithJitter })
            : t("hot.noJitter")}
        </Text>
        {spot.suggestedJitter && (
          <Act needs="admin" size="xs" variant="default" onClick={onSpread}>
            {t("spread.open")}
          </Act>
        )}
      </Group>
    </Stack>
  );
}
