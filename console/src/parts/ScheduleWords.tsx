import { Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { CronWords } from "./CronWords";

export interface Scheduled {
  cron?: string | null | undefined;
  every?: string | null | undefined;
  timezone?: string | null | undefined;
}

/** When something fires, in words. */
export function ScheduleWords({ of }: { of: Scheduled }) {
  const { t } = useTranslation("schedules");
  if (of.cron) return <CronWords cron={of.cron} />;
  return of.every ? t("every", { length: of.every }) : t("onDemand");
}

/** The same with the expression itself and its zone below it. */
export function ScheduleCell({ of }: { of: Scheduled }) {
  const source = of.cron ? [of.cron, of.timezone].filter(Boolean).join(" · ") : of.timezone;
  return (
    <>
      <Text size="sm" truncate>
        <ScheduleWords of={of} />
      </Text>
      {source && (
        <Text size="xs" c="dimmed" truncate>
          {source}
        </Text>
      )}
    </>
  );
}
