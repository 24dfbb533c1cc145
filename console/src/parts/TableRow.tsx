import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, memo, type MouseEvent } from "react";
import { useTranslation } from "react-i18next";
import classes from "./DataTable.module.css";
import type { Column } from "./columns";

interface TableRowProps {
  row: unknown;
  id: string;
  href: string | undefined;
  columns: readonly Column<unknown>[];
  /** Undefined where nothing can be chosen. */
  isChosen: boolean | undefined;
  /** Whether it has left the list, which is frozen. */
  isGone: boolean;
  onChoose: (id: string) => void;
  index: number;
  isActive: boolean;
  onActivate: (index: number) => void;
  template: string;
  height: number;
  start: number;
}

/** Drawn again only when something of its own has changed: while one scrolls, nothing of it has. */
export const TableRow = memo(function TableRow({ row, id, href, columns, index, onActivate, ...props }: TableRowProps) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  function open(event: MouseEvent | KeyboardEvent): void {
    if (href && !event.defaultPrevented) void navigate({ href });
  }
  function follow(event: MouseEvent, link: HTMLElement): void {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    void navigate({ href: link.getAttribute("href") ?? "" });
  }
  return (
    <div
      role="row"
      tabIndex={props.isActive ? 0 : -1}
      aria-rowindex={index + 2}
      data-index={index}
      data-gone={props.isGone || undefined}
      title={props.isGone ? t("table.gone") : undefined}
      data-linked={href ? true : undefined}
      className={classes.row}
      style={{ gridTemplateColumns: props.template, height: props.height, transform: `translateY(${props.start}px)` }}
      onFocus={() => onActivate(index)}
      onClick={(event) => {
        const inner = (event.target as Element).closest<HTMLElement>("a, button, input, label");
        if (!inner) open(event);
        else if (inner.dataset["rowLink"]) follow(event, inner);
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter" && event.target === event.currentTarget) open(event);
      }}
    >
      {props.isChosen !== undefined && (
        <div role="gridcell">
          <input
            type="checkbox"
            className={classes.check}
            aria-label={t("table.choose", { name: id })}
            checked={props.isChosen}
            onChange={() => props.onChoose(id)}
          />
        </div>
      )}
      {columns.map((column) => (
        <div key={column.id} role="gridcell" data-numeric={column.isNumeric || undefined}>
          {column.cell(row)}
        </div>
      ))}
    </div>
  );
});

interface RowLinkProps {
  href: string;
  isFaint?: boolean;
  children: string;
}

/** A link in a cell. Its row follows it, so that a thousand of them cost no more than their text. */
export function RowLink({ href, isFaint, children }: RowLinkProps) {
  return (
    <a href={href} className={classes.link} data-row-link="true" data-faint={isFaint || undefined} title={children}>
      <bdi>{children}</bdi>
    </a>
  );
}
