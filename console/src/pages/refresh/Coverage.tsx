import { Group, Progress, RingProgress, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { RefreshOut } from "@/api";
import { colourOf, percentOf, sharesOf } from "./freshness";

const FAILED = "var(--state-DEAD-solid)";

/** The share of a job's entities that were refreshed, and in red what failed, as a bar for a table. */
export function CoverageBar({ found }: { found: RefreshOut }) {
  const { t } = useTranslation("refresh");
  const { good, bad } = sharesOf(found);
  if (found.coverage === null) {
    return (
      <Text size="sm" c="dimmed">
        {t("noEntities")}
      </Text>
    );
  }
  return (
    <Group gap="sm" wrap="nowrap">
      <Progress.Root size="sm" flex={1}>
        <Progress.Section value={good * 100} color={colourOf(found)} aria-label={t("coverage")} />
        {bad > 0 && <Progress.Section value={bad * 100} color={FAILED} aria-label={t("failed")} />}
      </Progress.Root>
      <Text size="sm" className="numbers" w={56} ta="right">
        {percentOf(good)}
      </Text>
    </Group>
  );
}

/** The same as a ring, with the number in it. */
export function CoverageRing({ found }: { found: RefreshOut }) {
  const { t } = useTranslation("refresh");
  const { good, bad } = sharesOf(found);
  const told = found.coverage === null ? "–" : percentOf(good);
  return (
    <RingProgress
      size={152}
      thickness={12}
      rootColor="var(--horai-line)"
      sections={[
        { value: good * 100, color: colourOf(found) },
        { value: bad * 100, color: FAILED },
      ]}
      aria-label={`${t("coverage")} ${told}`}
      role="img"
      label={
        <Text ta="center" fz={22} fw={600} className="numbers" aria-hidden>
          {told}
        </Text>
      }
    />
  );
}
