import { Skeleton } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { type InfiniteData, useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { type Column, sorted, type Sorting } from "./columns";
import classes from "./DataTable.module.css";
import { ErrorView } from "./ErrorView";
import { useFrozen, usePointedAt } from "./frozen";
import { type Stillness, TableFoot } from "./TableFoot";
import { type Selection, type ServerOrder, TableHead } from "./TableHead";
import { TableRow } from "./TableRow";
import { type Total, TOTALS, useTotal } from "./total";

interface ListPage<Row> {
  items: Row[];
  nextCursor?: string | null;
}

interface DataTableProps<Row> {
  /** What the table lists, for those who cannot see it. */
  label: string;
  /** Begins with the topic: `["instances", filters]`. */
  queryKey: readonly [string, ...unknown[]];
  fetchPage: (cursor: string | undefined, signal: AbortSignal) => Promise<ListPage<Row>>;
  columns: readonly Column<Row>[];
  idOf: (row: Row) => string;
  /** Where Enter and a click on the row lead. */
  hrefOf?: (row: Row) => string;
  empty: ReactNode;
  selection?: Selection;
  order?: ServerOrder;
  rowHeight?: number;
  /** How the rows that match are counted, loaded or not. */
  total?: Total;
  /** Whether the list begins in the middle of what matches, at a time. */
  isPart?: boolean;
}

/** The number of pages that are kept up to date. With more of them loaded the list stands still, and a button leads back to the newest. */
const LIVE_PAGES = 5;

/** A list behind keyset cursors: pages come as one scrolls, and only the rows in sight are drawn. */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { label, queryKey, fetchPage, empty, selection, rowHeight = 44 } = props;
  const isPhone = useMediaQuery("(max-width: 48em)", false);
  const columns = useMemo(() => (isPhone ? props.columns.filter((column) => !column.isWideOnly) : props.columns), [isPhone, props.columns]);
  const scroller = useRef<HTMLDivElement>(null);
  const pages = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam, signal }) => fetchPage(pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.nextCursor ?? undefined,
    enabled: (query) => (query.state.data?.pages.length ?? 0) <= LIVE_PAGES,
  });
  const queries = useQueryClient();
  const isHeld = (pages.data?.pages.length ?? 0) > LIVE_PAGES;

  function goToNewest(): void {
    scroller.current?.scrollTo({ top: 0 });
    release(isHeld);
    if (!isHeld) return;
    queries.setQueryData<InfiniteData<ListPage<Row>, string | undefined>>(queryKey, (data) =>
      data && { pages: data.pages.slice(0, 1), pageParams: data.pageParams.slice(0, 1) },
    );
    void queries.invalidateQueries({ queryKey });
  }

  const [sorting, setSorting] = useState<Sorting | null>(null);
  const isWhole = pages.data !== undefined && !pages.hasNextPage;
  const total = useTotal(props.total, pages.data !== undefined && (pages.hasNextPage || props.isPart === true));
  const loaded = useMemo(() => pages.data?.pages.flatMap((page) => page.items) ?? [], [pages.data]);
  const live = useMemo(() => sorted(loaded, columns, isWhole ? sorting : null), [loaded, columns, isWhole, sorting]);
  const [isPaused, pause] = useState(false);
  const [isPointedAt, pointing] = usePointedAt();
  const stillness: Stillness = isHeld ? "scrolled" : isPaused ? "paused" : selection?.chosen.size ? "selected" : isPointedAt ? "pointed" : null;
  const [{ rows, gone, fresh, isMore }, release] = useFrozen(live, JSON.stringify([queryKey, sorting]), props.idOf, stillness !== null, isWhole);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 12,
  });
  const seen = virtual.getVirtualItems();
  const last = seen.at(-1)?.index ?? 0;
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = pages;
  useEffect(() => {
    if (!hasNextPage || isFetchingNextPage || last < rows.length - 20) return;
    // The rows drawn last are those of the old place until the browser reports a scroll: the place itself is asked, which costs a layout.
    const end = (scroller.current?.scrollTop ?? 0) + (scroller.current?.clientHeight ?? 0);
    if (end >= (rows.length - 40) * rowHeight) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage, last, rows.length, rowHeight]);
  useEffect(
    () =>
      // The operator's own change shows at once, also under the pointer; a list that was paused stays as it is.
      queries.getMutationCache().subscribe((event) => {
        if (event.type !== "updated" || event.action.type !== "success") return;
        void queries.invalidateQueries({ queryKey: [TOTALS] });
        if (!isPaused) release(true);
      }),
    [queries, release, isPaused],
  );

  const template = [selection && "40px", ...columns.map((column) => column.width ?? "minmax(120px, 1fr)")]
    .filter(Boolean)
    .join(" ");
  const [active, setActive] = useState(0);
  // The same function for the life of the table: a row that is handed another one would be drawn again.
  const latest = useRef(selection);
  useEffect(() => {
    latest.current = selection;
  });
  const choose = useCallback((id: string) => {
    latest.current?.onChange(toggled(latest.current.chosen, id));
  }, []);

  if (pages.error && rows.length === 0) {
    return <ErrorView error={pages.error} onRetry={() => void pages.refetch()} />;
  }
  // What is rare comes in pages that may be empty: only the last one says that there is nothing.
  if (pages.data && rows.length === 0 && !hasNextPage) {
    return <div className={classes.frame}>{empty}</div>;
  }

  function onKeyDown(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 15, PageUp: -15 }[event.key];
    if (step === undefined || event.metaKey || event.ctrlKey || event.altKey) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(rows.length - 1, active + step));
    setActive(next);
    virtual.scrollToIndex(next);
    requestAnimationFrame(() => {
      scroller.current?.querySelector<HTMLElement>(`[data-index="${next}"]`)?.focus();
    });
  }

  return (
    <div className={classes.frame} {...pointing}>
      <div className={classes.scroller} ref={scroller}>
        {/* oxlint-disable-next-line jsx-a11y/interactive-supports-focus */}
        <div
          role="grid"
          aria-label={label}
          aria-rowcount={hasNextPage ? -1 : rows.length + 1}
          aria-busy={pages.isPending}
          onKeyDown={onKeyDown}
          style={{ minWidth: "fit-content" }}
        >
          <TableHead
            columns={columns as readonly Column<never>[]}
            template={template}
            selection={selection}
            ids={() => rows.map(props.idOf)}
            order={props.order}
            sorting={isWhole ? sorting : null}
            onSort={setSorting}
            isWhole={isWhole}
          />
          {rows.length === 0 ? (
            <Skeletons columns={columns.length + (selection ? 1 : 0)} template={template} height={rowHeight} />
          ) : (
            <div role="rowgroup" style={{ height: virtual.getTotalSize(), position: "relative" }}>
              {seen.map((item) => {
                const row = rows[item.index];
                return (
                  row !== undefined && (
                    <TableRow
                      key={props.idOf(row)}
                      row={row}
                      id={props.idOf(row)}
                      href={props.hrefOf?.(row)}
                      columns={columns as readonly Column<unknown>[]}
                      isGone={gone.has(props.idOf(row))}
                      isChosen={selection?.chosen.has(props.idOf(row))}
                      onChoose={choose}
                      index={item.index}
                      isActive={item.index === Math.min(active, rows.length - 1)}
                      onActivate={setActive}
                      template={template}
                      height={rowHeight}
                      start={item.start}
                    />
                  )
                );
              })}
            </div>
          )}
        </div>
      </div>
      <TableFoot
        count={rows.length}
        hasMore={hasNextPage || props.isPart === true}
        total={total}
        isPending={pages.isPending}
        isLoading={isFetchingNextPage}
        stillness={stillness}
        fresh={fresh}
        isMore={isMore}
        onNewest={goToNewest}
        isPaused={isPaused}
        onPause={pause}
      />
    </div>
  );
}

function toggled(chosen: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const changed = new Set(chosen);
  if (!changed.delete(id)) changed.add(id);
  return changed;
}

function Skeletons({ columns, template, height }: { columns: number; template: string; height: number }) {
  return (
    <div role="presentation">
      {Array.from({ length: 8 }, (_, line) => (
        <div key={line} className={classes.waiting} style={{ gridTemplateColumns: template, height }}>
          {Array.from({ length: columns }, (__, cell) => (
            <Skeleton key={cell} height={12} width={`${50 + ((line * 7 + cell * 13) % 40)}%`} />
          ))}
        </div>
      ))}
    </div>
  );
}
