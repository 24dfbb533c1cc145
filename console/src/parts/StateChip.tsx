import { useTranslation } from "react-i18next";
import { type Shape, type StateName, STATES } from "@/generated/states";
import classes from "./StateChip.module.css";

const SHAPES: Record<Shape, string> = {
  ring: "M8 3.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9z",
  bars: "M4.5 4h7M4.5 8h7M4.5 12h7",
  play: "M5.5 3.5v9l7-4.5z",
  again: "M3.5 8a4.5 4.5 0 1 0 1.6-3.4L3.5 6M3.5 3v3h3",
  check: "M3.5 8.5l3 3 6-7",
  cross: "M4.5 4.5l7 7M11.5 4.5l-7 7",
  dash: "M4 8h8",
};
const SHAPE_OF = Object.fromEntries(STATES.map((state) => [state.name, state.shape])) as Record<StateName, Shape>;

/** The state of a node of a workflow run: that of an instance, or skipped. */
export type NodeState = StateName | "SKIPPED";

/** The state whose shape and colour stand for another one. */
export function lookOf(state: NodeState): StateName {
  return state === "SKIPPED" ? "CANCELLED" : state;
}

/** The shape of a state alone, in its colour: for dense places that say the state in words elsewhere. */
export function StateMark({ state, size = 14 }: { state: NodeState; size?: number }) {
  const look = lookOf(state);
  return (
    <svg width={size} height={size} viewBox="0 0 16 16" aria-hidden focusable={false} className={classes.mark}>
      <path
        d={SHAPES[SHAPE_OF[look]]}
        fill={look === "RUNNING" ? `var(--state-${look}-solid)` : "none"}
        stroke={`var(--state-${look}-solid)`}
        strokeWidth={2}
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  );
}

/** A state by shape, colour and word; all three come from one table. */
export function StateChip({ state }: { state: NodeState }) {
  const { t } = useTranslation();
  const style = { background: `var(--state-${lookOf(state)}-tint)`, color: `var(--state-${lookOf(state)}-text)` };
  return (
    <span className={classes.chip} style={style} data-state={state}>
      <StateMark state={state} />
      {t(`state.${state}`)}
    </span>
  );
}
