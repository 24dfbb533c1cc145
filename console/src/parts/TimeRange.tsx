import { Button, Popover, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useZone } from "@/app/zones";
import { Icon } from "./Icon";
import { InstantInput } from "./InstantInput";
import { formatInstant } from "./time";

const MINUTE = 60_000;
/** The quick ranges, in minutes before now. */
const QUICK = { minutes: 15, hour: 60, day: 1_440, week: 10_080 } as const;

interface TimeRangeProps {
  /** What the times are of: the fire time, the time of the failure. */
  label: string;
  from: string | undefined;
  to: string | undefined;
  /** Both ends together: RFC 3339, or undefined where an end is open. */
  onChange: (range: { from: string | undefined; to: string | undefined }) => void;
}

/** The start of a quick range: a full second, so that its address is short. */
export function startOf(quick: keyof typeof QUICK, now: number): string {
  return new Date(Math.floor((now - QUICK[quick] * MINUTE) / 1_000) * 1_000).toISOString().replace(".000Z", "Z");
}

/** A range of time: one of the last so many minutes, or any. A quick range begins at a fixed instant, so that a link shows the same rows to everybody. */
export function TimeRange({ label, from, to, onChange }: TimeRangeProps) {
  const { t } = useTranslation();
  const zone = useZone();
  const [isOpen, open] = useState(false);
  const clock = (at: string): string => formatInstant(new Date(at), zone, "minute");
  const shown = from && to ? t("range.between", { from: clock(from), to: clock(to) }) : from ? t("range.since", { from: clock(from) }) : to ? t("range.until", { to: clock(to) }) : t("range.any");
  const choose = (range: { from: string | undefined; to: string | undefined }): void => {
    onChange(range);
    open(false);
  };
  return (
    <Popover opened={isOpen} onChange={open} position="bottom-start" trapFocus width={280}>
      <Popover.Target>
        <Button
          variant="default"
          fw={500}
          leftSection={<Icon name="calendar" size={16} />}
          aria-label={t("range.label", { label, range: shown })}
          aria-expanded={isOpen}
          onClick={() => open(!isOpen)}
        >
          {shown}
        </Button>
      </Popover.Target>
      <Popover.Dropdown p="xs" aria-label={label}>
        <Stack gap={2}>
          <Text size="xs" c="dimmed" px="xs">
            {label}
          </Text>
          <Button variant="subtle" color="gray" justify="flex-start" size="compact-md" onClick={() => choose({ from: undefined, to: undefined })}>
            {t("range.any")}
          </Button>
          {(Object.keys(QUICK) as (keyof typeof QUICK)[]).map((quick) => (
            <Button key={quick} variant="subtle" color="gray" justify="flex-start" size="compact-md" onClick={() => choose({ from: startOf(quick, Date.now()), to: undefined })}>
              {t(`range.quick.${quick}`)}
            </Button>
          ))}
          <Stack gap="xs" px="xs" pt="xs">
            <InstantInput label={t("range.from")} value={from ?? ""} onChange={(at) => onChange({ from: at || undefined, to })} />
            <InstantInput label={t("range.to")} value={to ?? ""} onChange={(at) => onChange({ from, to: at || undefined })} />
          </Stack>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
