const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"] as const;

/** The size of a file in the largest unit that leaves at least 1: `1.2 MB`. */
export function sizeOf(bytes: number, language: string): string {
  const power = bytes < 1 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), UNITS.length - 1);
  const format = { style: "unit", unit: UNITS[power] ?? "byte", unitDisplay: "short", maximumSignificantDigits: 3 } as const;
  return new Intl.NumberFormat(language, format).format(bytes / 1_000 ** power);
}
