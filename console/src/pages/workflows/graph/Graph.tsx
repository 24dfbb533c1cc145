import { Select, useComputedColorScheme } from "@mantine/core";
import { Background, Controls, MiniMap, Panel, ReactFlow, useReactFlow } from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import classes from "./Graph.module.css";
import { JobNode } from "./JobNode";
import { lookOf } from "@/parts";
import { edgesOf, isLarge, type NodeData, nodesOf } from "./layout";
import type { GraphNode } from "./paths";
import type { Node } from "@xyflow/react";

export interface GraphProps {
  nodes: readonly GraphNode[];
  label: string;
  height: number;
  chosen?: string | undefined;
  onChoose?: (name: string) => void;
  /** From top to bottom, where there is little width. */
  isUpright?: boolean;
}

const TYPES = { job: JobNode };
const FIT = { padding: 0.06, maxZoom: 1, minZoom: 0.05 };

/** The nodes of a workflow in their order. */
export default function Graph({ nodes, label, height, chosen, onChoose, isUpright = false }: GraphProps) {
  const { t } = useTranslation("workflows");
  const scheme = useComputedColorScheme("light");
  const placed = useMemo(() => nodesOf(nodes, { chosen, onChoose, isUpright }), [nodes, chosen, onChoose, isUpright]);
  const edges = useMemo(() => edgesOf(nodes), [nodes]);
  const isMany = isLarge(nodes);
  // Another shape is another drawing, brought into sight as a whole; a change of states moves nothing.
  const shape = JSON.stringify(nodes.map((node) => [node.name, node.after]));
  return (
    <div className={classes.frame} style={{ height }}>
      <ReactFlow
        key={shape}
        aria-label={label}
        colorMode={scheme}
        nodes={placed}
        edges={edges}
        nodeTypes={TYPES}
        fitView
        fitViewOptions={FIT}
        minZoom={0.05}
        onlyRenderVisibleElements={isMany}
        maxZoom={1.5}
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        edgesFocusable={false}
        elementsSelectable={false}
        preventScrolling={false}
        zoomOnScroll={false}
        proOptions={{ hideAttribution: true }}
        ariaLabelConfig={{
          "controls.ariaLabel": t("graph.controls"),
          "controls.zoomIn.ariaLabel": t("graph.zoomIn"),
          "controls.zoomOut.ariaLabel": t("graph.zoomOut"),
          "controls.fitView.ariaLabel": t("graph.fit"),
        }}
      >
        <Background gap={20} size={1} />
        {isMany && <Finder nodes={nodes} />}
        {isMany && <MiniMap position="bottom-left" pannable zoomable className={classes.map!} ariaLabel={t("graph.map")} nodeColor={(node) => colourOf((node as Node<NodeData>).data.node)} nodeStrokeWidth={0} />}
        <Controls position="bottom-right" orientation="horizontal" showInteractive={false} fitViewOptions={FIT} />
      </ReactFlow>
    </div>
  );
}

function colourOf({ state }: GraphNode): string {
  return state ? `var(--state-${lookOf(state)}-solid)` : "var(--horai-edge)";
}

/** Brings a node into sight by its name. */
function Finder({ nodes }: { nodes: readonly GraphNode[] }) {
  const { t } = useTranslation("workflows");
  const flow = useReactFlow();
  return (
    <Panel position="top-left" className={`nopan nowheel ${classes.finder}`}>
      <Select
        size="xs"
        aria-label={t("graph.find")}
        placeholder={t("graph.find")}
        data={nodes.map((node) => ({ value: node.name, label: node.label ?? node.name }))}
        value={null}
        searchable
        limit={50}
        onChange={(name) => name !== null && void flow.fitView({ nodes: [{ id: name }], minZoom: 1, maxZoom: 1 })}
      />
    </Panel>
  );
}
