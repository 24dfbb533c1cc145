import { useNow } from "@/app/clock";
import { formatDuration } from "./time";

/** A length of time; nothing is shown as a dash. */
export function Duration({ ms }: { ms: number | null | undefined }) {
  if (ms === null || ms === undefined) {
    return <span aria-hidden>–</span>;
  }
  return <span className="numbers">{formatDuration(ms)}</span>;
}

/** The time between two instants, or null while one is missing. */
export function between(from: string | null | undefined, to: string | null | undefined): number | null {
  return from && to ? new Date(to).getTime() - new Date(from).getTime() : null;
}

interface ElapsedProps {
  from: string | null | undefined;
  to: string | null | undefined;
  isRunning: boolean;
}

/** The time between two instants. While something runs, it counts every second. */
export function Elapsed({ from, to, isRunning }: ElapsedProps) {
  return isRunning && from ? <Counting from={from} /> : <Duration ms={between(from, to)} />;
}

/** In full seconds, unlike a time that has ended. A browser's clock behind the server's shows 0 s. */
function Counting({ from }: { from: string }) {
  const seconds = Math.max(0, Math.floor((useNow() - new Date(from).getTime()) / 1_000));
  return <span className="numbers">{seconds < 60 ? `${seconds} s` : formatDuration(seconds * 1_000)}</span>;
}
