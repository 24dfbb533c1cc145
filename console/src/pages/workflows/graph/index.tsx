import { Skeleton } from "@mantine/core";
import { lazy, Suspense } from "react";
import type { GraphProps } from "./Graph";
import { breadthOf } from "./paths";

const Graph = lazy(() => import("./Graph"));

const [LOWEST, HIGHEST, ROW, EDGE] = [200, 440, 76, 72];

/** The graph of a workflow, as high as it is broad; what draws it is loaded when one is first looked at. */
export function WorkflowGraph(props: Omit<GraphProps, "height">) {
  const height = Math.min(HIGHEST, Math.max(LOWEST, breadthOf(props.nodes) * ROW + EDGE));
  return (
    <Suspense fallback={<Skeleton height={height} />}>
      <Graph {...props} height={height} />
    </Suspense>
  );
}

export { circleIn, descendantsOf, type GraphNode, heldBy, whyNoRerun } from "./paths";
