import { Modal, NumberInput, Skeleton } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { getQueue, getReconciler, getRun, putQueue, type QueueOut, resumeBackfill } from "@/api";
import { ConfirmDialog, ErrorView } from "@/parts";
import { TestDialog } from "../alerts/TestDialog";
import { ReplayMany } from "../dead-letters/ReplayMany";
import { HoldQuestion } from "../governor/Holds";
import { CancelDialog } from "../instances/CancelDialog";
import { HoldJob } from "../jobs/dialogs";
import { PauseQueue } from "../queues/PauseQueue";
import { setting } from "../queues/recipes";
import { tagOf, wishOf } from "../queues/settings";
import { Dialogs as ReconcilerDialogs } from "../reconcilers/dialogs";
import { TickDialog } from "../refresh/TickNow";
import { SinkDialogs } from "../sinks/SinkDialogs";
import { RerunDialog } from "../workflows/Rerun";
import { type Fix, subjectOf } from "./fixes";

interface FixProps<Kind extends Fix["kind"]> {
  fix: Extract<Fix, { kind: Kind }>;
  onClose: () => void;
}

/** The dialog of a fix: the one that the page of the cause asks with. */
export default function FixDialog({ fix, onClose }: { fix: Fix; onClose: () => void }) {
  switch (fix.kind) {
    case "replay":
      return <ReplayMany meant={{ filters: { job: fix.job, from: fix.since } }} onClose={onClose} />;
    case "cancel":
      return <CancelDialog id={fix.instance} isRunning opened onClose={onClose} />;
    case "limit":
      return <Limit fix={fix} onClose={onClose} />;
    case "rerun":
      return <RerunFrom fix={fix} onClose={onClose} />;
    case "test":
      return <TestDialog channel={{ name: fix.channel }} onClose={onClose} />;
    case "resumeSink":
      return <SinkDialogs chosen={{ sink: { name: fix.sink }, act: "resume" }} onClose={onClose} />;
    case "release":
      return <HoldQuestion asked={{ kind: fix.what, isHeld: true }} onClose={onClose} />;
    case "resumeQueue":
      return <ResumeQueue fix={fix} onClose={onClose} />;
    case "resumeJob":
      return <HoldJob act="resume" job={{ id: fix.id, name: fix.job }} onClose={onClose} />;
    case "tick":
      return <TickDialog job={{ id: fix.id, name: fix.job, status: "ACTIVE" }} opened onClose={onClose} />;
    case "reconcile":
      return <Reconcile fix={fix} onClose={onClose} />;
    case "resumeBackfill":
      return <ResumeBackfill fix={fix} onClose={onClose} />;
  }
}

interface KnownProps<Data> {
  fix: Fix;
  read: (signal: AbortSignal) => Promise<Data>;
  onClose: () => void;
  children: (data: Data) => ReactNode;
}

/** Shows the dialog of something as it was when the dialog was opened: a change by others meanwhile is refused, not overwritten. */
function Known<Data>({ fix, read, onClose, children }: KnownProps<Data>) {
  const { t } = useTranslation("overview");
  const query = useQuery({ queryKey: ["fix", fix], queryFn: ({ signal }) => read(signal), staleTime: Infinity, gcTime: 0 });
  if (query.data !== undefined) return children(query.data);
  return (
    <Modal opened onClose={onClose} size="lg" title={t("fix.named", { act: t(`fix.${fix.kind}`), name: subjectOf(fix) })}>
      <ErrorView error={query.error} onRetry={() => void query.refetch()} />
      {query.isPending && <Skeleton height={96} />}
    </Modal>
  );
}

function ResumeQueue({ fix, onClose }: FixProps<"resumeQueue">) {
  return (
    <Known fix={fix} read={(signal) => getQueue(fix.queue, { signal })} onClose={onClose}>
      {(queue) => <PauseQueue queue={queue} onClose={onClose} />}
    </Known>
  );
}

function Limit({ fix, onClose }: FixProps<"limit">) {
  return (
    <Known fix={fix} read={(signal) => getQueue(fix.queue, { signal })} onClose={onClose}>
      {(queue) => <RaiseLimit queue={queue} isClogged={fix.isClogged} onClose={onClose} />}
    </Known>
  );
}

/** The highest limit that a queue may have. */
const MOST = 10_000;

/** Gives a queue more slots. As many again as it has let it work as before, beside the runs that hold them. */
function RaiseLimit({ queue, isClogged, onClose }: { queue: QueueOut; isClogged: boolean; onClose: () => void }) {
  const { t } = useTranslation(["overview", "common"]);
  const queries = useQueryClient();
  const now = queue.maxConcurrency ?? 0;
  const [limit, setLimit] = useState(Math.min(2 * now, MOST));
  const wish = { ...wishOf(queue), maxConcurrency: limit };
  return (
    <ConfirmDialog
      opened
      onClose={onClose}
      title={t("limit.title", { name: queue.name })}
      confirm={t("limit.confirm")}
      needs="admin"
      recipe={setting(queue.name, wish)}
      onConfirm={async () => {
        if (limit <= now) throw new Error(t("limit.notHigher", { now }));
        await putQueue(queue.name, wish, undefined, { headers: tagOf(queue) });
        await queries.invalidateQueries({ queryKey: ["queues"] });
      }}
    >
      {t(isClogged ? "limit.explain" : "limit.explainFull", { count: now })}
      <NumberInput mt="md" label={t("limit.label")} allowDecimal={false} min={now + 1} max={MOST} value={limit} onChange={(value) => setLimit(Number(value))} />
    </ConfirmDialog>
  );
}

function RerunFrom({ fix, onClose }: FixProps<"rerun">) {
  return (
    <Known fix={fix} read={(signal) => getRun(fix.workflow, fix.run, { signal })} onClose={onClose}>
      {(run) => {
        const nodes = run.nodes ?? [];
        const node = nodes.find((each) => each.name === fix.node);
        return node && <RerunDialog run={run} node={node} nodes={nodes} opened onClose={onClose} />;
      }}
    </Known>
  );
}

function Reconcile({ fix, onClose }: FixProps<"reconcile">) {
  return (
    <Known fix={fix} read={(signal) => getReconciler(fix.reconciler, { signal })} onClose={onClose}>
      {(reconciler) => <ReconcilerDialogs asked={{ act: "run", reconciler }} onClose={onClose} />}
    </Known>
  );
}

function ResumeBackfill({ fix, onClose }: FixProps<"resumeBackfill">) {
  const { t } = useTranslation(["overview", "schedules"]);
  const queries = useQueryClient();
  return (
    <ConfirmDialog
      opened
      onClose={onClose}
      title={t("backfill.title", { job: fix.job })}
      confirm={t("schedules:resume.act")}
      note={{ label: t("schedules:resume.note") }}
      recipe={{ method: "POST", path: `/api/v1/backfills/${fix.id}/resume`, body: {}, cli: `horai backfills resume ${fix.id}` }}
      onConfirm={async (note) => {
        await resumeBackfill(fix.id, note ? { note } : {});
        await queries.invalidateQueries({ queryKey: ["backfills"] });
      }}
    >
      {t("backfill.explain")}
    </ConfirmDialog>
  );
}
