import { getLetters, type InstanceOut, type LetterOut } from "@/api";

/** The dead letter of an instance that died; null when it is no longer kept. */
export async function letterOf(instance: InstanceOut, signal?: AbortSignal): Promise<LetterOut | null> {
  const letters = await getLetters({ instance: instance.id, limit: 1 }, signal && { signal });
  return letters.items[0] ?? null;
}
