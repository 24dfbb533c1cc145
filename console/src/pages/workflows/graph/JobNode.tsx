import { Handle, type Node, type NodeProps, Position, useStore } from "@xyflow/react";
import { useTranslation } from "react-i18next";
import { lookOf, StateMark } from "@/parts";
import { formatDuration } from "@/parts/time";
import { useProgress } from "../progress";
import classes from "./Graph.module.css";
import type { NodeData } from "./layout";

/** Below this zoom a name cannot be read: the shape of the state is drawn large in its place. */
const FAR = 0.45;

/** A node of the graph: its name, and of a run how it is doing. */
export function JobNode({ data }: NodeProps<Node<NodeData>>) {
  const { node, isHeld, isChosen, onChoose, isUpright } = data;
  const { t } = useTranslation(["workflows", "common"]);
  const name = node.label ?? node.name;
  const progressOf = useProgress();
  const isFar = useStore((store) => store.transform[2] < FAR);
  const state = node.state && t(`common:state.${node.state}`);
  const look = node.state && lookOf(node.state);
  const below = isHeld ? t("graph.held") : [state, node.map && "done" in node.map ? progressOf(node.map) : typeof node.durationMs === "number" && formatDuration(node.durationMs)].filter(Boolean).join(" · ");
  return (
    <>
      <Handle type="target" position={isUpright ? Position.Top : Position.Left} className={classes.handle!} isConnectable={false} />
      <button
        type="button"
        className={`nopan ${classes.node}`}
        data-state={node.state}
        data-kind={node.kind ?? (node.workflow ? "workflow" : undefined)}
        data-held={isHeld || undefined}
        data-map={node.map ? true : undefined}
        data-far={isFar || undefined}
        aria-label={isFar ? [name, state].filter(Boolean).join(": ") : undefined}
        aria-pressed={onChoose ? isChosen : undefined}
        disabled={!onChoose}
        onClick={() => onChoose?.(node.name)}
        style={look && { borderColor: `var(--state-${look}-solid)`, background: `var(--state-${look}-tint)` }}
      >
        {node.state && <StateMark state={node.state} size={isFar ? 40 : 16} />}
        {!isFar && <span className={classes.words}>
          <b title={name}>{name}</b>
          <small style={look && { color: `var(--state-${look}-text)` }}>{[node.workflow && t("graph.runs", { workflow: node.workflow }), node.sensor && ("polls" in node.sensor ? t("sensor.polls", { count: node.sensor.polls }) : t("sensor.every", { every: node.sensor.every })), below || (!node.workflow && node.job !== node.name && node.job), node.triggerRule && node.triggerRule !== "allSuccess" && t(`rule.${node.triggerRule}`)].filter(Boolean).join(" · ")}</small>
        </span>}
      </button>
      <Handle type="source" position={isUpright ? Position.Bottom : Position.Right} className={classes.handle!} isConnectable={false} />
    </>
  );
}
