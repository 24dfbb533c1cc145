import { Button, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { type BackfillOut, getBackfill } from "@/api";
import { BackfillCard } from "./BackfillCard";

/** The backfill that was started, as it goes on. */
export function Started({ backfill, onClose }: { backfill: BackfillOut; onClose: () => void }) {
  const { t } = useTranslation("jobs");
  const now = useQuery({
    queryKey: ["backfills", backfill.id],
    queryFn: ({ signal }) => getBackfill(backfill.id, { signal }),
    initialData: backfill,
    initialDataUpdatedAt: 0,
  });
  return (
    <Stack gap="md">
      <BackfillCard backfill={now.data} />
      <Text size="sm" c="dimmed">
        {t("backfill.mayClose")}
      </Text>
      <Group justify="flex-end">
        <Button onClick={onClose}>{t("close")}</Button>
      </Group>
    </Stack>
  );
}
