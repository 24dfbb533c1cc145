import { Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { getBackfills, type JobOut } from "@/api";
import { Panel } from "@/parts";
import { BackfillCard } from "./BackfillCard";

/** The last backfills of a job, with those under way; nothing while it has none. */
export function Backfills({ job }: { job: JobOut }) {
  const { t } = useTranslation("jobs");
  const found = useQuery({
    queryKey: ["backfills", "of job", job.id],
    queryFn: ({ signal }) => getBackfills({ job: job.id, limit: 5 }, { signal }),
  });
  if (!found.data || found.data.items.length === 0) return null;
  return (
    <Panel title={t("backfill.list")}>
      <Stack gap="sm">
        {found.data.items.map((backfill) => (
          <BackfillCard key={backfill.id} backfill={backfill} />
        ))}
      </Stack>
    </Panel>
  );
}
