import { Group, Skeleton, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { detailOf, fieldErrors, type FireOut, preview, ProblemError } from "@/api";
import { useZone } from "@/app/zones";
import { inWords } from "@/i18n";
import { formatInstant } from "./time";
import { When } from "./When";
import type { ScheduleBody } from "./schedule";

const SHOWN = 5;

/** The fires that a schedule would have, from the server, while it is typed: in its own zone and in the viewer's. */
export function NextFires({ schedule }: { schedule: ScheduleBody }) {
  const { t } = useTranslation("schedules");
  const [settled] = useDebouncedValue(JSON.stringify(schedule), 250);
  const isEmpty = !schedule.cron && !schedule.every;
  const fires = useQuery({
    queryKey: ["preview", settled],
    queryFn: ({ signal }) => preview({ ...(JSON.parse(settled) as ScheduleBody), count: SHOWN }, { signal }),
    enabled: !isEmpty,
    placeholderData: keepPreviousData,
    retry: false,
  });
  const fault = fires.error instanceof ProblemError ? (Object.values(fieldErrors(fires.error))[0] ?? detailOf(fires.error)) : null;
  return (
    <Stack gap={4} mih={132} aria-live="polite">
      <Text size="xs" c="dimmed" fw={600}>
        {t("next")}
      </Text>
      {isEmpty && (
        <Text size="sm" c="dimmed">
          {t("nextEmpty")}
        </Text>
      )}
      {!isEmpty && fault && (
        <Text size="sm" c="var(--horai-bad)">
          {fault}
        </Text>
      )}
      {!isEmpty && !fault && (fires.data?.fires.map((fire) => <Fire key={fire.fireTime} fire={fire} zone={schedule.timezone} />) ?? <Waiting />)}
    </Stack>
  );
}

function Fire({ fire, zone }: { fire: FireOut; zone: string | null }) {
  const shown = useZone(zone);
  const note = fire.noteSaid && inWords(fire.noteSaid);
  return (
    <Group gap="md" wrap="nowrap">
      <Text size="sm">
        <When at={fire.fireTime} />
      </Text>
      {zone && zone !== shown && (
        <Text size="sm" c="dimmed" className="numbers" truncate>
          {formatInstant(new Date(fire.fireTime), zone, "minute")} {zone}
        </Text>
      )}
      {note && (
        <Text size="sm" c="var(--horai-warn)" truncate title={note}>
          {note}
        </Text>
      )}
    </Group>
  );
}

function Waiting() {
  return Array.from({ length: SHOWN }, (_, line) => <Skeleton key={line} height={16} my={2} width={280} />);
}
