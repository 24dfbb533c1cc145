import type { AttemptOut } from "@/api";

export type Line = AttemptOut["log"][number];
export type Level = Line["level"];

/** From the least to the most severe. */
export const LEVELS: readonly Level[] = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];

/** The lines of a log to show, and how to show them. */
export interface LogView {
  text: string;
  /** The least severe level that is shown. */
  level: Level;
  isWrapped: boolean;
  isFollowed: boolean;
}

export const WHOLE: LogView = { text: "", level: "DEBUG", isWrapped: true, isFollowed: true };

/** A log as a file: instant, progress, level and message of each line, separated by tabs. */
export function logText(lines: readonly Line[]): string {
  return lines.map((line) => [line.at, percentOf(line), line.level, line.message].join("\t")).join("\n");
}

/** The lines of at least a level whose message contains a text, in any case of letters. */
export function linesWith(lines: readonly Line[], text: string, level: Level = "DEBUG"): readonly Line[] {
  const wanted = text.trim().toLowerCase();
  const least = LEVELS.indexOf(level);
  return lines.filter((line) => LEVELS.indexOf(line.level) >= least && (wanted === "" || line.message.toLowerCase().includes(wanted)));
}

export function percentOf(line: Line): string {
  return line.progress === null ? "" : `${Math.round(line.progress * 100)} %`;
}
