import { formatInstant } from "@/parts";
import { COLUMNS, type Grid, isLabelled } from "./grid";
import classes from "./HeatMap.module.css";
import { minuteAt } from "./minutes";

interface HoursProps {
  from: string;
  grid: Grid;
  zone: string;
  rowHeight: number;
}

/** The hours beside the map; the first one of each day has its date. */
export function Hours({ from, grid, zone, rowHeight }: HoursProps) {
  const rows = Array.from({ length: grid.rows }, (_, row) => {
    const index = Math.max(0, row * COLUMNS - grid.shift);
    const [day = "", clock = ""] = formatInstant(minuteAt({ from }, index), zone, "minute").split(" ");
    return { row, index, day: day.slice(5), hour: Number(clock.slice(0, 2)) };
  });
  return (
    <div className={classes.hours} aria-hidden>
      {rows.map(({ row, index, day, hour }) => {
        const isDay = row === 0 || hour === 0;
        return (
          (isDay || isLabelled(hour, rowHeight)) && (
            <span key={index} style={{ top: row * rowHeight, height: Math.max(rowHeight, 14), lineHeight: `${Math.max(rowHeight, 14)}px` }}>
              {isDay && <b>{day}</b>} {`${String(hour).padStart(2, "0")}:00`}
            </span>
          )
        );
      })}
    </div>
  );
}
