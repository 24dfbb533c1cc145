import { useTranslation } from "react-i18next";
import type { Column, Sorting } from "./columns";
import classes from "./DataTable.module.css";
import { Icon } from "./Icon";

/** What the server orders a list by; other columns are sorted here, once the list is loaded to its end. */
export interface ServerOrder {
  /** The column that the list has its order from now. */
  column: string;
  isUp: boolean;
  /** All columns that the server orders by: that one alone, unless said otherwise. */
  columns?: readonly string[];
  onChange: (isUp: boolean, column: string) => void;
}

export interface Selection {
  chosen: ReadonlySet<string>;
  onChange: (chosen: ReadonlySet<string>) => void;
}

interface TableHeadProps {
  columns: readonly Column<never>[];
  template: string;
  selection: Selection | undefined;
  ids: () => string[];
  order: ServerOrder | undefined;
  sorting: Sorting | null;
  onSort: (sorting: Sorting | null) => void;
  isWhole: boolean;
}

export function TableHead({ columns, template, selection, ids, ...sort }: TableHeadProps) {
  return (
    <div role="row" className={classes.head} style={{ gridTemplateColumns: template }}>
      {selection && (
        <div role="columnheader">
          <ChooseAll ids={ids()} selection={selection} />
        </div>
      )}
      {columns.map((column) => (
        <Head key={column.id} column={column} {...sort} />
      ))}
    </div>
  );
}

type HeadProps = Pick<TableHeadProps, "order" | "sorting" | "onSort" | "isWhole"> & { column: Column<never> };

function Head({ column, order, sorting, onSort, isWhole }: HeadProps) {
  const { t } = useTranslation();
  const isOrder = order?.column === column.id;
  const isOrdered = order !== undefined && (order.columns ?? [order.column]).includes(column.id);
  const isUp = sorting?.id === column.id ? sorting.isUp : isOrder && !sorting ? order.isUp : null;
  function sort(): void {
    if (isOrdered) {
      onSort(null);
      if (!isOrder) order.onChange(true, column.id);
      else if (!sorting) order.onChange(!order.isUp, column.id);
    } else {
      onSort(isUp === null ? { id: column.id, isUp: false } : isUp ? null : { id: column.id, isUp: true });
    }
  }
  const isOff = !isOrdered && !isWhole;
  return (
    <div
      role="columnheader"
      data-numeric={column.isNumeric || undefined}
      aria-sort={isUp === null ? undefined : isUp ? "ascending" : "descending"}
    >
      {isOrdered || column.sortBy ? (
        <button
          type="button"
          className={classes.sort}
          aria-disabled={isOff || undefined}
          title={isOff ? t("table.sortWhole") : undefined}
          onClick={isOff ? undefined : sort}
        >
          <span>{column.header}</span>
          <span className={classes.arrow} data-up={isUp === true || undefined} data-shown={isUp !== null || undefined}>
            <Icon name="down" size={12} />
          </span>
        </button>
      ) : (
        column.header
      )}
    </div>
  );
}

function ChooseAll({ ids, selection }: { ids: string[]; selection: Selection }) {
  const { t } = useTranslation();
  const count = ids.filter((id) => selection.chosen.has(id)).length;
  return (
    <input
      type="checkbox"
      className={classes.check}
      aria-label={t("table.chooseAll")}
      checked={count > 0 && count === ids.length}
      ref={(box) => {
        if (box) box.indeterminate = count > 0 && count < ids.length;
      }}
      onChange={() => selection.onChange(count === ids.length ? new Set() : new Set(ids))}
    />
  );
}

