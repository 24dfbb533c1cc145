import { Skeleton } from "@mantine/core";
import { lazy, Suspense } from "react";
import type { GraphProps } from "./Graph";
import { breadthOf, depthOf } from "./paths";

const Graph = lazy(() => import("./Graph"));

const [LOWEST, HIGHEST, ROW, RANK, EDGE] = [200, 440, 76, 96, 72];
const HIGHEST_UPRIGHT = 560;
const LARGE = 600;
/** The same number of nodes as in `layout.ts`, which is loaded with the drawing. */
const MANY = 60;

/** The graph of a workflow, as high as it has to be; what draws it is loaded when one is first looked at. */
export function WorkflowGraph(props: Omit<GraphProps, "height">) {
  const wanted = props.isUpright ? depthOf(props.nodes) * RANK : breadthOf(props.nodes) * ROW;
  const height = props.nodes.length > MANY ? LARGE : Math.min(props.isUpright ? HIGHEST_UPRIGHT : HIGHEST, Math.max(LOWEST, wanted + EDGE));
  return (
    <Suspense fallback={<Skeleton height={height} />}>
      <Graph {...props} height={height} />
    </Suspense>
  );
}

export { circleIn, descendantsOf, type GraphNode, heldBy, whyNoRerun } from "./paths";
