import { Stack, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { RefreshOut, TickOut } from "@/api";
import { useNow } from "@/app/clock";
import { between, Duration, Facts, Go, Panel, ProgressBar, When } from "@/parts";

/** The last tick with its progress, and when the next one comes. */
export function LastTick({ found, zone }: { found: RefreshOut; zone: string | null }) {
  const { t } = useTranslation("refresh");
  const tick = found.lastTick;
  return (
    <Panel title={t("lastTick")} h="100%">
      <Stack gap="md">
        {tick ? (
          <Progress tick={tick} />
        ) : (
          <Text size="sm" c="dimmed">
            {t("noTick")}
          </Text>
        )}
        <Facts
          items={[
            [t("tickFire"), tick && <When key="fire" at={tick.fireTime} zone={zone} />],
            [t("tickTook"), tick?.endedAt && <Duration key="took" ms={between(tick.startedAt, tick.endedAt)} />],
            [t("batch"), tick && <Go key="batch" to="." search={{ batch: tick.batchNo }} className="numbers">{tick.batchNo}</Go>],
            [t("nextTick"), <When key="next" at={found.nextTick} zone={zone} />],
          ]}
        />
      </Stack>
    </Panel>
  );
}

function Progress({ tick }: { tick: TickOut }) {
  const { t } = useTranslation("refresh");
  const now = useNow();
  const done = tick.succeeded + tick.failed;
  const seconds = (now - new Date(tick.startedAt).getTime()) / 1_000;
  const isOpen = tick.endedAt === null || done < tick.loaded;
  return (
    <div>
      <ProgressBar
        label={t("lastTick")}
        done={done}
        total={isOpen ? Math.max(tick.due, tick.loaded) : tick.loaded}
        rate={isOpen && seconds > 0 ? done / seconds : null}
        tone={isOpen ? "running" : tick.failed > 0 ? "failed" : "done"}
      />
      <Text size="sm" c="dimmed" mt={4} className="numbers">
        {t("tickCounts", { succeeded: tick.succeeded, failed: tick.failed, running: tick.running })}
      </Text>
    </div>
  );
}
