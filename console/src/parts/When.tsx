import { Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useNow } from "@/app/clock";
import { useZone } from "@/app/zones";
import { formatInstant, formatRelative, offsetOf } from "./time";

interface WhenProps {
  /** RFC 3339; nothing is shown as a dash. */
  at: string | null | undefined;
  /** `clock`: 2026-11-15 09:00:05. `relative`: 3 min. ago. `both`: the clock, and relative below it in grey. */
  as?: "clock" | "relative" | "both";
  /** The zone of the job it belongs to, for those who chose to see that. */
  zone?: string | null;
  precision?: "minute" | "second" | "millis";
}

/** An instant in the chosen zone. Every time on the console is one of these. */
export function When({ at, as = "clock", zone: own, precision = "second" }: WhenProps) {
  const zone = useZone(own);
  if (!at) {
    return <span aria-hidden>–</span>;
  }
  const instant = new Date(at);
  const clock = formatInstant(instant, zone, precision);
  const full = `${formatInstant(instant, zone, "millis")} ${offsetOf(instant, zone)} (${zone})`;
  return (
    <time dateTime={at} title={full} className="numbers">
      {as === "relative" ? <Relative at={instant} /> : clock}
      {as === "both" && (
        <Text span display="block" size="xs" c="dimmed">
          <Relative at={instant} />
        </Text>
      )}
    </time>
  );
}

function Relative({ at }: { at: Date }) {
  const { i18n } = useTranslation();
  return formatRelative(at, useNow(), i18n.language);
}
