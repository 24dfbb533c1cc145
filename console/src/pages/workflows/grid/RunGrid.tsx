import { Group, Skeleton, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type FocusEvent, type KeyboardEvent, memo, type PointerEvent, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { getGrid, type GridNodeOut, type GridOut, type GridRunOut, type WorkflowOut } from "@/api";
import { ErrorView, formatDuration, lookOf, type NodeState, Panel, StateMark, When } from "@/parts";
import { useProgress } from "../progress";
import classes from "./Grid.module.css";
import { countIn, heightsOf, type Place, signOf, stepFrom } from "./grid";

const ROW = 28;
const MAP_ROW = 36;

/** The last runs as columns, newest first, the nodes as rows: one request, and only the rows in sight are drawn. */
export function RunGrid({ workflow }: { workflow: WorkflowOut }) {
  const { t } = useTranslation("workflows");
  const found = useQuery({
    queryKey: ["workflows", workflow.name, "grid"],
    queryFn: ({ signal }) => getGrid(workflow.id, {}, { signal }),
  });
  if (found.data?.runs.length === 0) return null;
  return (
    <Panel
      title={t("grid.title")}
      aside={
        <Text size="sm" c="dimmed">
          {found.data && t("grid.lead", { count: found.data.runs.length })}
        </Text>
      }
    >
      <ErrorView error={found.error} onRetry={() => void found.refetch()} />
      {found.isPending && <Skeleton height={160} />}
      {found.data && <Cells workflow={workflow.name} grid={found.data} />}
    </Panel>
  );
}

function Cells({ workflow, grid }: { workflow: string; grid: GridOut }) {
  const { t } = useTranslation("workflows");
  const scroller = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState<Place>({ row: -1, column: 0 });
  const [told, tell] = useState<Place | null>(null);
  const isWide = grid.nodes.some((node) => node.maps);
  const virtual = useVirtualizer({
    count: grid.nodes.length,
    getScrollElement: () => scroller.current,
    estimateSize: (row) => (grid.nodes[row]?.maps ? MAP_ROW : ROW),
    overscan: 6,
    scrollPaddingStart: 64,
  });
  const heights = useMemo(() => heightsOf(grid.runs), [grid.runs]);

  function onKeyDown(event: KeyboardEvent): void {
    const next = event.metaKey || event.ctrlKey || event.altKey ? null : stepFrom(place, event.key, grid.nodes.length, grid.runs.length);
    if (next === null) return;
    event.preventDefault();
    setPlace(next);
    if (next.row >= 0) virtual.scrollToIndex(next.row);
    requestAnimationFrame(() => scroller.current?.querySelector<HTMLElement>(`[data-place="${next.row} ${next.column}"]`)?.focus());
  }

  // One listener for all cells: a tooltip or a listener for each would make a large grid slow.
  function onPoint(event: PointerEvent | FocusEvent): void {
    const at = (event.target as HTMLElement).closest<HTMLElement>("[data-place]")?.dataset["place"];
    if (at === undefined) return;
    const [row = -1, column = 0] = at.split(" ").map(Number);
    tell({ row, column });
    if (event.type === "focus") setPlace({ row, column });
  }

  const style = { "--cell": isWide ? "44px" : "26px", "--columns": grid.runs.length } as React.CSSProperties;
  const shownPlace = { row: Math.min(place.row, grid.nodes.length - 1), column: Math.min(place.column, grid.runs.length - 1) };
  return (
    <>
      <div className={classes.scroller} ref={scroller} style={style}>
        {/* oxlint-disable-next-line jsx-a11y/interactive-supports-focus */}
        <div
          role="grid"
          aria-label={t("grid.label", { name: workflow })}
          aria-rowcount={grid.nodes.length + 1}
          aria-colcount={grid.runs.length + 1}
          className={classes.grid}
          onKeyDown={onKeyDown}
          onPointerOver={onPoint}
          onPointerLeave={() => tell(null)}
          onFocusCapture={onPoint}
        >
          <Head workflow={workflow} runs={grid.runs} heights={heights} active={shownPlace.row === -1 ? shownPlace.column : null} />
          <div role="rowgroup" style={{ height: virtual.getTotalSize(), position: "relative" }}>
            {virtual.getVirtualItems().map((item) => {
              const node = grid.nodes[item.index];
              return (
                node && (
                  <Row
                    key={node.name}
                    workflow={workflow}
                    node={node}
                    runs={grid.runs}
                    sign={signOf(node, grid)}
                    row={item.index}
                    start={item.start}
                    height={item.size}
                    active={shownPlace.row === item.index ? shownPlace.column : null}
                  />
                )
              );
            })}
          </div>
        </div>
      </div>
      <Told grid={grid} place={told} />
      <Legend grid={grid} />
    </>
  );
}

interface HeadProps {
  workflow: string;
  runs: readonly GridRunOut[];
  heights: readonly number[];
  active: number | null;
}

/** One bar per run: as high as it lasted, in the colour of its state, with its shape below. */
function Head({ workflow, runs, heights, active }: HeadProps) {
  const { t } = useTranslation(["workflows", "common"]);
  return (
    <div role="row" aria-rowindex={1} className={classes.head}>
      <div role="columnheader" className={classes.corner}>
        {t("grid.corner")}
      </div>
      {runs.map((run, column) => (
        <div role="columnheader" key={run.id}>
          <Link
            to="/workflows/$workflow/runs/$run"
            params={{ workflow, run: run.id }}
            preload={false}
            className={classes.run}
            data-place={`-1 ${column}`}
            data-state={run.state}
            tabIndex={active === column ? 0 : -1}
            aria-label={`${t("run.title", { id: run.id })}: ${t(`common:state.${run.state}`)}`}
          >
            <span className={classes.bar}>
              <i style={{ height: `${Math.round((heights[column] ?? 0) * 100)}%`, background: `var(--state-${run.state}-solid)` }} />
            </span>
            <StateMark state={run.state} size={12} />
          </Link>
        </div>
      ))}
    </div>
  );
}

interface RowProps {
  workflow: string;
  node: GridNodeOut;
  runs: readonly GridRunOut[];
  sign: string;
  row: number;
  start: number;
  height: number;
  active: number | null;
}

const Row = memo(DrawnRow, (one, other) => one.sign === other.sign && one.row === other.row && one.start === other.start && one.active === other.active && one.height === other.height);

function DrawnRow({ workflow, node, runs, row, start, height, active }: RowProps) {
  const { t } = useTranslation(["workflows", "common"]);
  return (
    <div role="row" aria-rowindex={row + 2} className={classes.row} style={{ height, transform: `translateY(${start}px)` }}>
      <div role="rowheader" className={classes.name}>
        <Link to="/workflows/$workflow/nodes/$node" params={{ workflow, node: node.name }} preload={false}>
          {node.name}
        </Link>
      </div>
      {runs.map((run, column) => {
        const state = node.states[column] as NodeState | null | undefined;
        const counts = node.maps?.[column];
        if (!state) return <div role="gridcell" key={run.id} aria-colindex={column + 2} aria-label={t("compare.missing")} />;
        return (
          <div role="gridcell" key={run.id} aria-colindex={column + 2}>
            <Link
              to="/workflows/$workflow/runs/$run"
              params={{ workflow, run: run.id }}
              search={{ node: node.name } as never}
              preload={false}
              className={classes.cell}
              data-place={`${row} ${column}`}
              data-state={state}
              tabIndex={active === column ? 0 : -1}
              aria-label={`${node.name}, ${t("run.title", { id: run.id })}: ${t(`common:state.${state}`)}${counts ? ` ${countIn(counts)}` : ""}`}
              style={{ background: `var(--state-${lookOf(state)}-tint)` }}
            >
              <StateMark state={state} size={14} />
              {counts && (
                <small style={{ color: `var(--state-${lookOf(counts.failed > 0 ? "DEAD" : state)}-text)` }}>{countIn(counts)}</small>
              )}
            </Link>
          </div>
        );
      })}
    </div>
  );
}

/** The place under the pointer or the focus, in words. */
function Told({ grid, place }: { grid: GridOut; place: Place | null }) {
  const { t } = useTranslation(["workflows", "common"]);
  const progressOf = useProgress();
  const run = place && grid.runs[place.column];
  const node = place && place.row >= 0 ? grid.nodes[place.row] : undefined;
  if (!run) return <p className={classes.told}>{t("grid.hint")}</p>;
  const state = node ? (node.states[place.column] as NodeState | null) : run.state;
  const counts = node?.maps?.[place.column];
  const words = [
    node?.name,
    t("run.title", { id: run.id }),
    state && t(`common:state.${state}`),
    counts && progressOf(counts),
    !node && run.durationMs !== null && formatDuration(run.durationMs),
  ];
  return (
    <p className={classes.told}>
      {words.filter(Boolean).join(" · ")}
      {" · "}
      <When at={run.fireTime} />
    </p>
  );
}

/** The shapes of the states in sight. */
function Legend({ grid }: { grid: GridOut }) {
  const { t } = useTranslation();
  const states = new Set(grid.nodes.flatMap((node) => node.states).filter((state) => state !== null)) as Set<NodeState>;
  return (
    <Group gap="md" mt={4}>
      {[...states].toSorted().map((state) => (
        <Group key={state} gap={4}>
          <StateMark state={state} />
          <Text size="xs" c="dimmed">
            {t(`state.${state}`)}
          </Text>
        </Group>
      ))}
    </Group>
  );
}
