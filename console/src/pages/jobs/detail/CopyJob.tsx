import type { JobOut } from "@/api";
import { CopyAs } from "@/parts";
import { quoted } from "@/parts/recipes";
import { draftOf, jobOf } from "../form/draft";

/** The job itself, to be made again elsewhere. */
export function CopyJob({ job }: { job: JobOut }) {
  const body = jobOf(draftOf(job));
  const cli = `echo ${quoted(JSON.stringify(body))} | horai jobs create --file -`;
  return <CopyAs recipe={{ method: "POST", path: "/api/v1/jobs", body, cli }} />;
}
