import { useComputedColorScheme } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useZone } from "@/app/zones";
import classes from "./Chart.module.css";
import { clockOf } from "./time";

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
}

/** Values over time, in the chosen zone. */
export function Chart({ label, times, series, height = 180, format = String, limit }: ChartProps) {
  const { ref, width } = useElementSize();
  const place = useRef<HTMLDivElement>(null);
  const zone = useZone();
  const scheme = useComputedColorScheme("light");

  // Drawn anew with every change: a plot of some hundred points takes a millisecond or two.
  useEffect(() => {
    if (!place.current || width === 0) return;
    const frame = { width, height, zone, limit, format, scheme };
    const plot = new uPlot(optionsOf(series, place.current, frame), dataOf(times, series), place.current);
    return () => plot.destroy();
  }, [width, height, zone, limit, format, scheme, times, series]);

  const told = series.map((each) => `${each.label} ${lastOf(each.values, format)}`).join(", ");
  return (
    <div ref={ref} className={classes.chart} role="img" aria-label={`${label}: ${told}`} style={{ minHeight: height }}>
      <div ref={place} />
      <div className={classes.legend} aria-hidden>
        {series.map((each) => (
          <span key={each.label}>
            <i style={{ background: each.colour }} />
            {each.label} <b className="numbers">{lastOf(each.values, format)}</b>
          </span>
        ))}
      </div>
    </div>
  );
}

function lastOf(values: readonly (number | null)[], format: (value: number) => string): string {
  const last = values.findLast((value) => value !== null);
  return last === undefined || last === null ? "–" : format(last);
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
}

function optionsOf(series: readonly Series[], place: Element, frame: Frame): uPlot.Options {
  const grey = paint(place, "var(--mantine-color-dimmed)");
  const line = paint(place, "var(--horai-line)");
  const axis: uPlot.Axis = { stroke: grey, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "12px system-ui" };
  return {
    width: frame.width,
    height: frame.height,
    legend: { show: false },
    cursor: { y: false, points: { size: 6 } },
    tzDate: (at) => uPlot.tzDate(new Date(at * 1e3), frame.zone),
    scales: { y: { range: (_, __, most) => [0, Math.max(most ?? 0, frame.limit ?? 0, 1) * 1.1] } },
    axes: [{ ...axis, size: 28, space: 76, values: (_, ticks) => timesOf(ticks, frame.zone) }, { ...axis, size: 60, values: (_, ticks) => ticks.map(frame.format) }],
    series: [
      {},
      ...series.map((each) => {
        const colour = paint(place, each.colour);
        return { label: each.label, stroke: colour, width: 1.75, points: { show: false }, ...(each.isFilled && { fill: `${colour}26` }) };
      }),
    ],
    hooks: { draw: frame.limit === undefined ? [] : [(plot) => drawLimit(plot, frame.limit!, paint(place, "var(--horai-warn)"))] },
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
