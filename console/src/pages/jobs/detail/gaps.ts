/** A time in seconds, and what was then. */
export type Point = readonly [number, number | null];

const FAR = 6;

/** Where nothing was for far longer than usual, a line would tell of what nobody saw: there it is broken. */
export function withGaps(points: readonly Point[]): Point[] {
  const apart = points.slice(1).map(([at], index) => at - points[index]![0]);
  const usual = apart.toSorted((one, other) => one - other)[Math.floor(apart.length / 2)] ?? 0;
  return points.flatMap(([at, value], index) => {
    const wait = (points[index + 1]?.[0] ?? at) - at;
    return usual > 0 && wait > FAR * usual ? [[at, value], [at + usual, null]] : [[at, value]];
  });
}
