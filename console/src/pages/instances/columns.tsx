import { Text } from "@mantine/core";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { InstanceOut } from "@/api";
import { between, type Column, Duration, Go, StateChip, When } from "@/parts";

/** What a list of instances shows of each. */
export function useInstanceColumns(): readonly Column<InstanceOut>[] {
  const { t } = useTranslation(["instances", "common"]);
  return useMemo(
    () => [
      { id: "state", header: t("column.state"), width: "144px", cell: (row) => <StateChip state={row.state} /> },
      {
        id: "job",
        header: t("column.job"),
        width: "minmax(124px, 1fr)",
        cell: (row) => (
          <Go to="/jobs/$job" params={{ job: row.job }} size="sm" title={row.job}>
            {row.job}
          </Go>
        ),
      },
      {
        id: "key",
        header: t("column.key"),
        width: "minmax(124px, 1fr)",
        cell: (row) => (
          <Go to="/instances/$instance" params={{ instance: row.id }} size="sm" c={row.key ? undefined : "dimmed"} title={row.key ?? row.id}>
            <bdi>{row.key ?? `#${row.id}`}</bdi>
          </Go>
        ),
      },
      { id: "fire", header: t("column.fire"), width: "176px", cell: (row) => <When at={row.fireTime} /> },
      {
        id: "delay",
        header: t("column.delay"),
        width: "84px",
        isNumeric: true,
        cell: (row) => <Duration ms={delayOf(row)} />,
      },
      {
        id: "duration",
        header: t("column.duration"),
        width: "84px",
        isNumeric: true,
        cell: (row) => <Duration ms={between(row.startedAt, row.finishedAt)} />,
      },
      { id: "attempt", header: t("column.attempt"), width: "88px", isNumeric: true, cell: (row) => row.attempt || "–" },
      {
        id: "error",
        header: t("column.note"),
        width: "minmax(120px, 0.8fr)",
        cell: (row) => <Note row={row} />,
      },
    ],
    [t],
  );
}

/** From when it was wanted to when it began; of a retry, since its own time. */
function delayOf(row: InstanceOut): number | null {
  const late = between(row.executeTime, row.startedAt);
  return late === null ? null : Math.max(0, late);
}

function Note({ row }: { row: InstanceOut }) {
  const { t } = useTranslation();
  const told = row.reason ? t(`reason.${row.reason}`) : row.errorCode;
  return (
    <Text span size="sm" c="dimmed" title={row.errorMsg ?? told ?? undefined}>
      {told}
    </Text>
  );
}
