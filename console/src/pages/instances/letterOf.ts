import { getLetters, type InstanceOut, type LetterOut } from "@/api";

const AROUND_MS = 30_000;
const PAGE = 500;
const MOST_PAGES = 10;

/** The dead letter of an instance that died: it was written with its end. Null when it is not among those of that minute. */
export async function letterOf(instance: InstanceOut, signal?: AbortSignal): Promise<LetterOut | null> {
  if (!instance.finishedAt) return null;
  const died = new Date(instance.finishedAt).getTime();
  const around = {
    job: instance.jobId,
    from: new Date(died - AROUND_MS).toISOString(),
    to: new Date(died + AROUND_MS).toISOString(),
    limit: PAGE,
  };
  let cursor: string | null = null;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const letters = await getLetters({ ...around, ...(cursor && { cursor }) }, signal ? { signal } : undefined);
    const found = letters.items.find((letter) => letter.instanceId === instance.id);
    if (found) return found;
    cursor = letters.nextCursor;
    if (cursor === null) return null;
  }
  return null;
}
