import { Group, Progress, RingProgress, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { RefreshOut } from "@/api";
import { percentOf, colourOf } from "./freshness";

/** The share of a job's entities that are fresh, as a bar for a table. */
export function CoverageBar({ found }: { found: RefreshOut }) {
  const { t } = useTranslation("refresh");
  if (found.coverage === null) {
    return (
      <Text size="sm" c="dimmed">
        {t("noEntities")}
      </Text>
    );
  }
  return (
    <Group gap="sm" wrap="nowrap">
      <Progress value={found.coverage * 100} color={colourOf(found)} size="sm" flex={1} aria-label={t("coverage")} />
      <Text size="sm" className="numbers" w={56} ta="right">
        {percentOf(found.coverage)}
      </Text>
    </Group>
  );
}

/** The same as a ring, with the number in it. */
export function CoverageRing({ found }: { found: RefreshOut }) {
  const { t } = useTranslation("refresh");
  const share = found.coverage ?? 0;
  const told = found.coverage === null ? "–" : percentOf(found.coverage);
  return (
    <RingProgress
      size={152}
      thickness={12}
      rootColor="var(--horai-line)"
      sections={[{ value: share * 100, color: colourOf(found) }]}
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
