import type { NodeIn, WorkflowIn, WorkflowOut, WorkflowPatch } from "@/api";
import { LOCAL_ZONE } from "@/app/zones";
import { bodyOf, draftOf as scheduleOf, type ScheduleDraft } from "@/parts";
import type { GraphNode } from "../graph";

/** A node while it is written; `id` keeps its row where it is. */
export interface NodeDraft {
  id: number;
  name: string;
  job: string;
  after: string[];
  payload?: unknown;
}

export interface WorkflowDraft {
  name: string;
  schedule: ScheduleDraft;
  nodes: NodeDraft[];
}

/** What a name may look like. */
export const EXAMPLE = "nightly_close";

export const EMPTY: WorkflowDraft = {
  name: "",
  schedule: scheduleOf({ cron: "0 2 * * *" }, LOCAL_ZONE),
  nodes: [
    { id: 1, name: "", job: "", after: [] },
    { id: 2, name: "", job: "", after: [] },
  ],
};

export function draftOf(workflow: WorkflowOut): WorkflowDraft {
  return {
    name: workflow.name,
    schedule: scheduleOf(workflow, LOCAL_ZONE),
    nodes: workflow.nodes.map((node, place) => ({
      id: place + 1,
      name: node.name,
      job: node.job === node.name ? "" : node.job,
      after: [...node.after],
      ...(node.payload !== null && { payload: node.payload }),
    })),
  };
}

function nodesOf(draft: WorkflowDraft): NodeIn[] {
  return draft.nodes.map(({ name, job, after, payload }) => ({
    name: name.trim(),
    ...(job.trim() && { job: job.trim() }),
    after,
    ...(payload !== undefined && { payload }),
  }));
}

/** What is sent to create it: fields without a value are left out. */
export function createdBy(draft: WorkflowDraft): WorkflowIn {
  const schedule = Object.fromEntries(Object.entries(bodyOf(draft.schedule)).filter(([, value]) => value !== null));
  return { name: draft.name.trim(), ...schedule, nodes: nodesOf(draft) };
}

/** What is sent to change it: null takes a field away. */
export function changedBy(draft: WorkflowDraft): WorkflowPatch {
  return { ...bodyOf(draft.schedule), nodes: nodesOf(draft) };
}

export function withNode(draft: WorkflowDraft): WorkflowDraft {
  const id = Math.max(0, ...draft.nodes.map((node) => node.id)) + 1;
  return { ...draft, nodes: [...draft.nodes, { id, name: "", job: "", after: [] }] };
}

/** A node that goes takes its name out of what others wait for. */
export function withoutNode(draft: WorkflowDraft, gone: NodeDraft): WorkflowDraft {
  const left = draft.nodes.filter((node) => node.id !== gone.id);
  const isStillThere = left.some((node) => node.name === gone.name);
  return { ...draft, nodes: isStillThere ? left : left.map((node) => ({ ...node, after: node.after.filter((name) => name !== gone.name) })) };
}

/** Those that wait for a node follow its new name. */
export function withChange(draft: WorkflowDraft, before: NodeDraft, change: Partial<NodeDraft>): WorkflowDraft {
  const isRenamed = change.name !== undefined && before.name !== "" && isAlone(draft, before.name);
  return {
    ...draft,
    nodes: draft.nodes.map((node) => {
      const after = isRenamed ? node.after.map((name) => (name === before.name ? change.name! : name)).filter(Boolean) : node.after;
      return node.id === before.id ? { ...node, after, ...change } : { ...node, after };
    }),
  };
}

function isAlone(draft: WorkflowDraft, name: string): boolean {
  return draft.nodes.filter((node) => node.name === name).length === 1;
}

/** What can be drawn already: nodes that have a name, each name once. */
export function drawnBy(draft: WorkflowDraft): GraphNode[] {
  const named = new Map<string, GraphNode>();
  for (const node of draft.nodes) {
    const name = node.name.trim();
    if (name && !named.has(name)) named.set(name, { name, job: node.job.trim() || name, after: node.after });
  }
  return [...named.values()];
}
