import type { JobOut } from "@/api";
import { CopyAs } from "@/parts";
import { draftOf, jobOf } from "../form/draft";
import { creation } from "../recipes";

/** The job itself, to be made again elsewhere. */
export function CopyJob({ job }: { job: JobOut }) {
  return <CopyAs recipe={creation(jobOf(draftOf(job)))} />;
}
