import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { fieldErrors, preview, type PreviewIn } from "@/api";
import { type JobDraft, scheduleOf } from "./draft";

const COUNT = 6;

/** When a job with this draft would fire, asked as the typing pauses; with what is wrong with it, by field. */
export function usePreview(draft: JobDraft) {
  const [schedule] = useDebouncedValue(JSON.stringify(scheduleOf(draft)), 300);
  const asked = JSON.parse(schedule) as PreviewIn;
  const isAsked = Boolean(asked.cron ?? asked.every);
  const fires = useQuery({
    queryKey: ["preview", schedule],
    queryFn: ({ signal }) => preview({ ...asked, count: COUNT }, { signal }),
    enabled: isAsked,
    placeholderData: keepPreviousData,
    retry: false,
  });
  return { fires: isAsked && !fires.error ? fires.data?.fires : undefined, errors: isAsked ? fieldErrors(fires.error) : {}, isAsked };
}
