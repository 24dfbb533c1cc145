import type { ReactNode } from "react";
import classes from "./Facts.module.css";

/** Names and values in two columns; a value that is missing is left out. */
export function Facts({ items }: { items: readonly (readonly [name: string, value: ReactNode])[] }) {
  return (
    <dl className={classes.facts}>
      {items
        .filter(([, value]) => value !== null && value !== undefined && value !== false)
        .map(([name, value]) => (
          <div key={name} className={classes.row}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
