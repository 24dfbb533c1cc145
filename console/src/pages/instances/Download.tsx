import { getInstances, type InstanceOut } from "@/api";
import { Download } from "@/parts";
import { type InstanceFilters, paramsOf } from "./filters";

const PAGE = 500;

export const COLUMNS = [
  "id",
  "job",
  "key",
  "state",
  "reason",
  "fireTime",
  "startedAt",
  "finishedAt",
  "attempt",
  "queue",
  "priority",
  "node",
  "errorCode",
  "errorMsg",
] as const satisfies readonly (keyof InstanceOut)[];

/** The instances that match, the newest first, as a file. */
export function DownloadInstances({ filters }: { filters: InstanceFilters }) {
  return (
    <Download<InstanceOut>
      name="instances"
      columns={COLUMNS}
      fetchPage={(cursor) => getInstances({ ...paramsOf(filters), limit: PAGE, ...(cursor && { cursor }) })}
    />
  );
}
