import { Group, Progress, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { formatDuration } from "./time";

interface ProgressBarProps {
  label: string;
  done: number;
  total: number;
  /** Done per second, where it is known; the rest of the time follows from it. */
  rate?: number | null;
  tone?: "running" | "paused" | "done" | "failed";
}

const COLOURS = {
  running: "var(--mantine-primary-color-filled)",
  paused: "var(--state-CANCELLED-solid)",
  done: "var(--state-SUCCESS-solid)",
  failed: "var(--state-DEAD-solid)",
};

/** How far long work has come, in numbers, and when it will be through. */
export function ProgressBar({ label, done, total, rate, tone = "running" }: ProgressBarProps) {
  const { t, i18n } = useTranslation();
  const share = total > 0 ? Math.min(1, done / total) : 0;
  const number = new Intl.NumberFormat(i18n.language);
  const left = rate && rate > 0 && done < total ? ((total - done) / rate) * 1_000 : null;
  return (
    <div>
      <Group justify="space-between" mb={4}>
        <Text size="sm" className="numbers">
          {t("progress.of", { done: number.format(done), total: number.format(total) })}
        </Text>
        <Text size="sm" c="dimmed" className="numbers">
          {left === null ? `${Math.floor(share * 100)} %` : t("progress.left", { time: formatDuration(left) })}
        </Text>
      </Group>
      <Progress value={share * 100} color={COLOURS[tone]} aria-label={label} />
    </div>
  );
}
