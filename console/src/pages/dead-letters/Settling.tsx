import { Button, Group, Stack, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { ErrorView, Facts, ProgressBar, type useWork } from "@/parts";
import type { Only } from "./settling";

interface SettlingProps {
  verb: "replay" | "discard";
  work: ReturnType<typeof useWork>;
  total: number;
  onClose: () => void;
}

/** How far a replay or a discard of many has come; it can be stopped between two portions. */
export function Settling({ verb, work, total, onClose }: SettlingProps) {
  const { t } = useTranslation(["dead-letters", "common"]);
  const { done, left } = work.tally;
  const isOver = work.phase === "done";
  return (
    <Stack gap="md">
      <ProgressBar
        label={t(`${verb}.manyTitle`)}
        done={done + left}
        total={isOver ? done + left : Math.max(total, done + left)}
        tone={work.error ? "failed" : isOver ? "done" : "running"}
      />
      <Text size="sm" aria-live="polite">
        {isOver ? t(`${verb}.settled`, { count: done }) : t(`${verb}.working`)}
        {left > 0 && ` ${t("replay.left", { count: left })}`}
      </Text>
      <ErrorView error={work.error} />
      <Group justify="flex-end">
        {isOver ? (
          <Button onClick={onClose}>{t("replay.close")}</Button>
        ) : (
          <Button variant="default" loading={work.phase === "stopping"} onClick={work.stop}>
            {t("replay.stop")}
          </Button>
        )}
      </Group>
    </Stack>
  );
}

/** What a filter says, to be seen again before it is acted upon. */
export function Narrowed({ only }: { only: Only }) {
  const { t } = useTranslation(["dead-letters", "common"]);
  const items = Object.entries(only).map(([name, value]) => [t(`filter.${name as keyof Only}`), <bdi key={name}>{value}</bdi>] as const);
  return items.length > 0 ? <Facts items={items} /> : null;
}
