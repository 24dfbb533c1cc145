import { useComputedColorScheme } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useZone } from "@/app/zones";
import classes from "./Chart.module.css";
import { decadesOf, labelsOf, type Scale } from "./scales";
import { clockOf, formatInstant } from "./time";

export interface Series {
  label: string;
  /** A CSS colour or variable: `var(--state-DEAD-solid)`. */
  colour: string;
  values: readonly (number | null)[];
  isFilled?: boolean;
}

interface ChartProps {
  /** What it shows, for those who cannot see it. */
  label: string;
  /** Seconds since 1970, ascending. */
  times: readonly number[];
  series: readonly Series[];
  height?: number;
  format?: (value: number) => string;
  /** A line to stay under, such as the 2 s of the trigger delay. */
  limit?: number;
  /** `log`: each step ten times the last, so that one old instance does not press all others to the ground. */
  scale?: Scale;
  /** The least that the axis reaches to. */
  least?: number;
  /** Charts of one group show the same moment under the pointer. */
  group?: string;
}

/** Values over time, in the chosen zone. The legend tells the last ones, or those under the pointer. */
export function Chart({ label, times, series, height = 180, format = String, limit, scale = "linear", least = 1, group }: ChartProps) {
  const { ref, width } = useElementSize();
  const place = useRef<HTMLDivElement>(null);
  const zone = useZone();
  const scheme = useComputedColorScheme("light");
  const [pointed, point] = useState<number | null>(null);

  // Drawn anew with every change: a plot of some hundred points takes a millisecond or two.
  useEffect(() => {
    if (!place.current || width === 0) return;
    const frame = { width, height, zone, limit, format, scheme, scale, least, group, point };
    const plot = new uPlot(optionsOf(series, place.current, frame), dataOf(times, series), place.current);
    return () => plot.destroy();
  }, [width, height, zone, limit, format, scheme, scale, least, group, times, series]);

  const told = series.map((each) => `${each.label} ${lastOf(each.values, format)}`).join(", ");
  const at = pointed === null ? undefined : times[pointed];
  return (
    <div ref={ref} className={classes.chart} role="img" aria-label={`${label}: ${told}`} style={{ minHeight: height }}>
      <div ref={place} />
      <div className={classes.legend} aria-hidden>
        {series.map((each) => (
          <span key={each.label}>
            <i style={{ background: each.colour }} />
            {each.label} <b className="numbers">{at === undefined ? lastOf(each.values, format) : written(each.values[pointed!], format)}</b>
          </span>
        ))}
        {at !== undefined && <span className={classes.at}>{formatInstant(new Date(at * 1_000), zone, "minute").slice(5)}</span>}
      </div>
    </div>
  );
}

function written(value: number | null | undefined, format: (value: number) => string): string {
  return value === undefined || value === null ? "–" : format(value);
}

function lastOf(values: readonly (number | null)[], format: (value: number) => string): string {
  return written(
    values.findLast((value) => value !== null),
    format,
  );
}

function dataOf(times: readonly number[], series: readonly Series[]): uPlot.AlignedData {
  return [[...times], ...series.map((each) => [...each.values])];
}

/** A canvas knows no CSS variables: they are read where the chart stands. */
function paint(place: Element, colour: string): string {
  const name = /^var\((--[\w-]+)\)$/.exec(colour)?.[1];
  return name ? getComputedStyle(place).getPropertyValue(name).trim() : colour;
}

interface Frame {
  width: number;
  height: number;
  zone: string;
  limit: number | undefined;
  format: (value: number) => string;
  /** Colours are other ones in the dark. */
  scheme: string;
  scale: Scale;
  least: number;
  group: string | undefined;
  point: (index: number | null) => void;
}

function optionsOf(series: readonly Series[], place: Element, frame: Frame): uPlot.Options {
  const { width, height, zone, limit, group, point } = frame;
  const { y, values } = upright(frame);
  const grey = paint(place, "var(--mantine-color-dimmed)");
  const line = paint(place, "var(--horai-line)");
  const axis: uPlot.Axis = { stroke: grey, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "12px system-ui" };
  return {
    width,
    height,
    legend: { show: false },
    padding: [8, 28, 0, 0], // half of a time's label may stand to the right of the last line
    cursor: { y: false, points: { size: 6 }, ...(group && { sync: { key: group } }) },
    tzDate: (at) => uPlot.tzDate(new Date(at * 1e3), zone),
    scales: { y },
    axes: [
      { ...axis, size: 28, space: 76, values: (_, ticks) => timesOf(ticks, zone) },
      { ...axis, size: 60, ...values },
    ],
    series: [{}, ...series.map((each) => lineOf(each, paint(place, each.colour)))],
    hooks: {
      draw: limit === undefined ? [] : [(plot) => drawLimit(plot, limit, paint(place, "var(--horai-warn)"))],
      setCursor: [(plot) => point(plot.cursor.idx ?? null)],
    },
  };
}

/** A single value between gaps has no line to either side: it gets a point. */
function lineOf({ label, isFilled, values }: Series, colour: string): uPlot.Series {
  const isThere = (index: number): boolean => typeof values[index] === "number";
  const isAlone = (index: number): boolean => isThere(index) && !isThere(index - 1) && !isThere(index + 1);
  const alone = values.flatMap((_, index) => (isAlone(index) ? [index] : []));
  return {
    label,
    stroke: colour,
    width: 1.75,
    points: { show: alone.length > 0, filter: () => alone, size: 4, fill: colour },
    ...(isFilled && { fill: `${colour}26` }),
  };
}

/** The scale of the values, and what is written beside it. */
function upright({ scale, limit = 0, least, format }: Frame): { y: uPlot.Scale; values: Partial<uPlot.Axis> } {
  if (scale === "linear") {
    const range = (_: uPlot, __: number, most: number): [number, number] => [0, Math.max(most ?? 0, limit, least) * 1.1];
    return { y: { range }, values: { values: (_, ticks) => ticks.map(format) } };
  }
  const range = (lowest: number | null, most: number | null): [number, number] => {
    const steps = decadesOf(lowest ?? limit, Math.max(most ?? 0, limit, least));
    return [steps[0]!, steps.at(-1)!];
  };
  return {
    y: { distr: 3, range: (_, lowest, most) => range(lowest, most) },
    values: { splits: (_, __, lowest, most) => decadesOf(lowest, most), filter: (_, ticks) => ticks, values: (_, ticks) => labelsOf(ticks) },
  };
}

/** As exact as the ticks are far apart: dates, minutes or seconds. */
function timesOf(ticks: readonly number[], zone: string): string[] {
  const apart = (ticks[1] ?? 0) - (ticks[0] ?? 0);
  return ticks.map((tick) => {
    const { month, day, hour, minute, second } = clockOf(new Date(tick * 1_000), zone);
    if (apart >= 86_400) return `${month}-${day}`;
    return apart >= 60 ? `${hour}:${minute}` : `${hour}:${minute}:${second}`;
  });
}

function drawLimit(plot: uPlot, limit: number, colour: string): void {
  const y = plot.valToPos(limit, "y", true);
  plot.ctx.save();
  plot.ctx.strokeStyle = colour;
  plot.ctx.setLineDash([4, 4]);
  plot.ctx.beginPath();
  plot.ctx.moveTo(plot.bbox.left, y);
  plot.ctx.lineTo(plot.bbox.left + plot.bbox.width, y);
  plot.ctx.stroke();
  plot.ctx.restore();
}
