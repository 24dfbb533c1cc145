import { type GetJobsParams, getJobs, type ListedJob } from "@/api";
import { Download } from "@/parts";

const PAGE = 500;

const COLUMNS = [
  "id",
  "name",
  "status",
  "note",
  "cron",
  "every",
  "timezone",
  "nextFire",
  "target",
  "queue",
  "priority",
  "jitter",
  "tags",
  "declaredBy",
  "createdAt",
  "updatedAt",
] as const satisfies readonly (keyof ListedJob)[];

/** The jobs that match, as a file; each with its next fire. */
export function DownloadJobs({ params }: { params: GetJobsParams }) {
  return (
    <Download<ListedJob>
      name="jobs"
      columns={COLUMNS}
      fetchPage={(cursor) => getJobs({ ...params, recent: 0, limit: PAGE, ...(cursor && { cursor }) })}
    />
  );
}
