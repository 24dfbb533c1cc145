import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";
import { useTranslation } from "react-i18next";
import { StateMark } from "@/parts";
import { formatDuration } from "@/parts/time";
import classes from "./Graph.module.css";
import type { NodeData } from "./layout";

/** A node of the graph: its name, and of a run how it is doing. */
export function JobNode({ data }: NodeProps<Node<NodeData>>) {
  const { node, isHeld, isChosen, onChoose, isUpright } = data;
  const { t } = useTranslation(["workflows", "common"]);
  const state = node.state && t(`common:state.${node.state}`);
  const below = isHeld ? t("graph.held") : [state, typeof node.durationMs === "number" && formatDuration(node.durationMs)].filter(Boolean).join(" · ");
  return (
    <>
      <Handle type="target" position={isUpright ? Position.Top : Position.Left} className={classes.handle!} isConnectable={false} />
      <button
        type="button"
        className={`nopan ${classes.node}`}
        data-state={node.state}
        data-held={isHeld || undefined}
        aria-pressed={onChoose ? isChosen : undefined}
        disabled={!onChoose}
        onClick={() => onChoose?.(node.name)}
        style={node.state && { borderColor: `var(--state-${node.state}-solid)`, background: `var(--state-${node.state}-tint)` }}
      >
        {node.state && <StateMark state={node.state} size={16} />}
        <span className={classes.words}>
          <b title={node.name}>{node.name}</b>
          <small style={node.state && { color: `var(--state-${node.state}-text)` }}>{below || (node.job !== node.name && node.job)}</small>
        </span>
      </button>
      <Handle type="source" position={isUpright ? Position.Bottom : Position.Right} className={classes.handle!} isConnectable={false} />
    </>
  );
}
