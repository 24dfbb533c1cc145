import type { BackfillIn } from "@/api";
import { quoted } from "@/parts/recipes";

/** What somebody wants to be run again, as it is typed. */
export interface Wish {
  from: string;
  to: string;
  mode: NonNullable<BackfillIn["mode"]>;
  rate: string;
  maxConcurrency: string;
  note: string;
}

export const NO_WISH: Wish = { from: "", to: "", mode: "missing", rate: "", maxConcurrency: "", note: "" };

/** What the server takes. What is no number is its to refuse. */
export function backfillOf(wish: Wish): BackfillIn {
  const concurrency = wish.maxConcurrency.trim();
  return {
    from: wish.from,
    mode: wish.mode,
    ...(wish.to && { to: wish.to }),
    ...(wish.rate.trim() && { rate: wish.rate.trim() }),
    ...(concurrency && { maxConcurrency: Number.isNaN(Number(concurrency)) ? (concurrency as never) : Number(concurrency) }),
    ...(wish.note.trim() && { note: wish.note.trim() }),
  };
}

/** The same with `horai jobs backfill …`. */
export function flagsOf(wish: BackfillIn): string {
  const flags = [`--from ${wish.from}`, wish.to && `--to ${wish.to}`, wish.mode && `--mode ${wish.mode}`];
  const limits = [wish.rate && `--rate ${quoted(String(wish.rate))}`, wish.maxConcurrency && `--max-concurrency ${wish.maxConcurrency}`];
  return [...flags, ...limits, wish.note && `--note ${quoted(wish.note)}`]
    .filter(Boolean)
    .join(" ");
}

const PER = { s: 1, m: 60, h: 3_600 };

/** Seconds that so many take at a rate such as `100/s`; null without one. */
export function secondsAt(rate: string, count: number): number | null {
  const [, amount, unit] = /^\s*(\d+(?:\.\d+)?)(?:\/([smh]))?\s*$/.exec(rate) ?? [];
  if (!amount || Number(amount) <= 0) return null;
  return (count / Number(amount)) * PER[(unit ?? "s") as keyof typeof PER];
}
