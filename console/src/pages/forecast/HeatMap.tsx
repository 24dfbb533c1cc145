import { useComputedColorScheme } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { type PointerEvent, useEffect, useMemo, useRef } from "react";
import { useTranslation } from "react-i18next";
import { useZone } from "@/app/zones";
import { formatInstant } from "@/parts";
import { COLUMNS, type Grid, gridOf, indexAt, placeOf, rangeOf, stepBy, strengthOf } from "./grid";
import classes from "./HeatMap.module.css";
import { Hours } from "./Hours";
import { minuteAt } from "./minutes";
import { type Outline, totalsOf } from "./trial";

interface HeatMapProps {
  outline: Outline;
  /** The minute that is looked at. */
  chosen: number;
  onChoose: (index: number) => void;
  /** By a click, or by Enter: what fires in it. */
  onOpen: (index: number) => void;
}

/** Fires per minute, an hour a row, on one canvas: thousands of cells with tooltips of their own would grind. */
export function HeatMap({ outline, chosen, onChoose, onOpen }: HeatMapProps) {
  const { t, i18n } = useTranslation("forecast");
  const totals = useMemo(() => totalsOf(outline), [outline]);
  const [least, most] = useMemo(() => rangeOf(totals), [totals]);
  const zone = useZone();
  const grid = useMemo(() => gridOf(new Date(outline.from), totals.length, zone), [outline, totals, zone]);
  const rowHeight = grid.rows > 50 ? 6 : 16;
  const { ref, width } = useElementSize();
  const canvas = useRef<HTMLCanvasElement>(null);
  const scheme = useComputedColorScheme("light");
  useEffect(() => {
    if (canvas.current && width > 0) paint(canvas.current, outline, grid, { width, rowHeight, scheme });
  }, [outline, grid, width, rowHeight, scheme]);

  const { row, column } = placeOf(chosen, grid);
  const at = formatInstant(minuteAt(outline, chosen), zone, "minute");
  const look = (event: PointerEvent<HTMLDivElement>): void => {
    const box = event.currentTarget.getBoundingClientRect();
    const found = indexAt(
      Math.floor((event.clientY - box.top) / rowHeight),
      Math.floor(((event.clientX - box.left) / box.width) * COLUMNS),
      grid,
    );
    if (found !== null) onChoose(found);
  };
  return (
    <div className={classes.map}>
      <div className={classes.minutes} aria-hidden>
        {[0, 15, 30, 45].map((minute) => (
          <span key={minute} style={{ left: `${(minute / COLUMNS) * 100}%` }}>
            {`:${String(minute).padStart(2, "0")}`}
          </span>
        ))}
      </div>
      <Hours from={outline.from} grid={grid} zone={zone} rowHeight={rowHeight} />
      <div
        ref={ref}
        className={classes.field}
        style={{ height: grid.rows * rowHeight }}
        role="slider"
        tabIndex={0}
        aria-label={t("map.label")}
        aria-valuemin={0}
        aria-valuemax={grid.count - 1}
        aria-valuenow={chosen}
        aria-valuetext={t("map.at", { at, count: totals[chosen] ?? 0 })}
        onPointerMove={look}
        onPointerDown={look}
        onClick={() => onOpen(chosen)}
        onKeyDown={(event) => {
          if (event.key === "Enter") onOpen(chosen);
          const next = stepBy(event.key, chosen, grid);
          if (next === null) return;
          event.preventDefault();
          onChoose(next);
        }}
      >
        <canvas ref={canvas} className={classes.canvas} aria-hidden />
        <i
          className={classes.cursor}
          style={{ left: `${(column / COLUMNS) * 100}%`, top: row * rowHeight, width: `${100 / COLUMNS}%`, height: rowHeight }}
        />
      </div>
      <div className={classes.legend} role="img" aria-label={t("map.legend")}>
        {least.toLocaleString(i18n.language)} <i /> {most.toLocaleString(i18n.language)}
        {outline.added && (
          <>
            <i className={classes.added} /> {t("map.added")}
          </>
        )}
      </div>
    </div>
  );
}

interface Frame {
  width: number;
  rowHeight: number;
  /** Colours are other ones in the dark. */
  scheme: string;
}

function paint(canvas: HTMLCanvasElement, outline: Outline, grid: Grid, { width, rowHeight }: Frame): void {
  const context = canvas.getContext("2d");
  if (!context) return;
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(grid.rows * rowHeight * scale);
  context.scale(scale, scale);
  const style = getComputedStyle(canvas);
  const [accent, ground, trial] = ["--mantine-primary-color-filled", "--horai-ground", "--horai-trial"].map((name) => style.getPropertyValue(name).trim());
  const totals = totalsOf(outline);
  const range = rangeOf(totals);
  const cell = width / COLUMNS;
  const gap = rowHeight > 8 ? 1 : 0.5;
  totals.forEach((fires, index) => {
    const { row, column } = placeOf(index, grid);
    const box = [column * cell, row * rowHeight, cell - gap, rowHeight - gap] as const;
    context.globalAlpha = 1;
    context.fillStyle = ground ?? "";
    context.fillRect(...box);
    context.globalAlpha = strengthOf(fires, range);
    context.fillStyle = (outline.added?.[index] ? trial : accent) ?? "";
    context.fillRect(...box);
  });
}
