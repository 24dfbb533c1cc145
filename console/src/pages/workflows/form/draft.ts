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
  /** Undefined: once all of them have succeeded. */
  triggerRule?: NonNullable<NodeIn["triggerRule"]>;
  /** Kept as it is: the form does not change it. */
  retry?: NonNullable<NodeIn["retry"]>;
  /** Kept as it is too. */
  map?: NonNullable<NodeIn["map"]>;
  /** Kept as it is too: the parameters of the run of the workflow `job`. */
  workflow?: string;
  params?: NonNullable<NodeIn["params"]>;
  /** Kept as it is too. */
  sensor?: NonNullable<NodeIn["sensor"]>;
  payload?: unknown;
  /** The assets that it updates, kept as they are. */
  produces?: readonly string[];
}

/** What most workflows leave as it is. */
export interface WorkflowSettings {
  queue: string;
  priority: NonNullable<WorkflowIn["priority"]> | "";
  overlap: NonNullable<WorkflowIn["overlap"]>;
  misfire: NonNullable<WorkflowIn["misfire"]>;
  jitter: string;
  tags: string[];
  title: string;
  owner: string;
  description: string;
  /** Undefined: none. */
  payload: unknown;
}

export interface WorkflowDraft {
  name: string;
  schedule: ScheduleDraft;
  settings: WorkflowSettings;
  nodes: NodeDraft[];
}

/** What a name may look like. */
export const EXAMPLE = "nightly_close";

export const EMPTY: WorkflowDraft = {
  name: "",
  schedule: scheduleOf({ cron: "0 2 * * *" }, LOCAL_ZONE),
  settings: { queue: "", priority: "", overlap: "allow", misfire: "once", jitter: "", tags: [], title: "", owner: "", description: "", payload: undefined },
  nodes: [
    { id: 1, name: "", job: "", after: [] },
    { id: 2, name: "", job: "", after: [] },
  ],
};

export function draftOf(workflow: WorkflowOut): WorkflowDraft {
  return {
    name: workflow.name,
    schedule: scheduleOf(workflow, LOCAL_ZONE),
    settings: {
      queue: workflow.queue,
      priority: workflow.priority,
      overlap: workflow.overlap,
      misfire: workflow.misfire,
      jitter: workflow.jitter ?? "",
      tags: [...workflow.tags],
      title: workflow.title ?? "",
      owner: workflow.owner ?? "",
      description: workflow.description ?? "",
      payload: workflow.payload ?? undefined,
    },
    nodes: workflow.nodes.map((node, place) => ({
      id: place + 1,
      name: node.name,
      job: node.job === node.name ? "" : node.job,
      after: [...node.after],
      ...(node.triggerRule !== "allSuccess" && { triggerRule: node.triggerRule }),
      ...(node.retry && { retry: node.retry }),
      ...(node.map && { map: node.map }),
      ...(node.produces.length > 0 && { produces: node.produces }),
      ...(node.workflow && { workflow: node.workflow }),
      ...(node.params && { params: node.params }),
      ...(node.sensor && { sensor: node.sensor }),
      ...(node.payload !== null && { payload: node.payload }),
    })),
  };
}

function nodesOf(draft: WorkflowDraft): NodeIn[] {
  return draft.nodes.map(({ name, job, after, triggerRule, retry, map, produces, workflow, params, sensor, payload }) => ({
    name: name.trim(),
    ...(workflow ? { workflow } : job.trim() && { job: job.trim() }),
    ...(params && { params }),
    after,
    ...(triggerRule && triggerRule !== "allSuccess" && after.length > 0 && { triggerRule }),
    ...(retry && { retry }),
    ...(map && { map }),
    ...(produces && { produces: [...produces] }),
    ...(sensor && { sensor }),
    ...(payload !== undefined && { payload }),
  }));
}

/** The settings as they are sent; null is what the server has of itself. What is never late cannot overlap itself either. */
function settingsOf({ settings, schedule }: WorkflowDraft): WorkflowPatch {
  const hasSlots = schedule.kind !== "none";
  return {
    queue: settings.queue.trim() || null,
    priority: settings.priority || null,
    tags: settings.tags.length > 0 ? settings.tags : null,
    title: settings.title.trim() || null,
    owner: settings.owner.trim() || null,
    description: settings.description.trim() || null,
    payload: settings.payload ?? null,
    overlap: hasSlots && settings.overlap !== "allow" ? settings.overlap : null,
    misfire: hasSlots && settings.misfire !== "once" ? settings.misfire : null,
    jitter: (hasSlots && settings.jitter.trim()) || null,
  };
}

/** What is sent to create it: fields without a value are left out. */
export function createdBy(draft: WorkflowDraft): WorkflowIn {
  const given = Object.entries({ ...bodyOf(draft.schedule), ...settingsOf(draft) }).filter(([, value]) => value !== null);
  return { name: draft.name.trim(), ...Object.fromEntries(given), nodes: nodesOf(draft) };
}

/** What is sent to change it: null takes a field away. A setting that stays is not sent: what is inherited goes on to be so. */
export function changedBy(draft: WorkflowDraft, before: WorkflowDraft): WorkflowPatch {
  const had = settingsOf(before) as Record<string, unknown>;
  const changed = Object.entries(settingsOf(draft)).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(had[name]));
  return { ...bodyOf(draft.schedule), ...Object.fromEntries(changed), nodes: nodesOf(draft) };
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
