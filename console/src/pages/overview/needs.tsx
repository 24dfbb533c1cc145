import { Fragment, type ReactNode } from "react";
import type { AttentionOut, DriftOut, HeldInstances } from "@/api";
import { Go } from "@/parts";
import { Fault, Need, Plain, Seen, ToJob, Words } from "./Need";
import { blockedRuns, holdups, limits, undelivered } from "./standstill";

/** Everything that needs somebody, the worst first. */
export function needsOf(found: AttentionOut): ReactNode[] {
  return [...holdups(found), ...broken(found), ...blockedRuns(found), ...undelivered(found), ...limits(found), ...held(found), ...underWay(found)];
}

function broken(found: AttentionOut): ReactNode[] {
  const dead = found.dying.map((one) => (
    <Need
      key={`dead ${one.jobId}`}
      tone="bad"
      icon="deadLetters"
      title={<ToJob name={one.job} />}
      detail={
        <Go to="/dead-letters" search={{ job: one.job }} inherit c="inherit">
          <Words name="dead" values={{ count: one.instances }} /> <Fault code={one.errorCode} />
        </Go>
      }
      at={one.lastAt}
      fix={{ kind: "replay", job: one.job, since: hourBefore(found.computedAt) }}
    />
  ));
  const failing = found.failing.map((one) => (
    <Need
      key={`failing ${one.jobId}`}
      tone="warn"
      icon="replay"
      title={<ToJob name={one.job} />}
      detail={
        <Go to="/instances" search={{ job: one.job, state: "FAIL" }} inherit c="inherit">
          <Words name="failing" values={{ count: one.instances }} /> <Fault code={one.errorCode} />
        </Go>
      }
      at={one.lastAt}
      see={
        <Go to="/instances" search={{ job: one.job, state: "FAIL" }} size="xs">
          <Seen name="instances" />
        </Go>
      }
    />
  ));
  return [...dead, ...late(found), ...lost(found), ...failing];
}

function late({ late: { count, more, examples } }: AttentionOut): ReactNode[] {
  const first = examples[0];
  if (!first) return [];
  return [
    <Need
      key="late"
      tone="bad"
      icon="instances"
      title={<Words name="late" values={{ count, shown: more ? `${count}+` : count }} />}
      detail={[...new Map(examples.map((one) => [one.job, one])).values()].map((one) => (
        <span key={one.id}>
          <Go to="/instances/$instance" params={{ instance: one.id }} inherit c="inherit">
            {one.job}
          </Go>{" "}
        </span>
      ))}
      at={first.due}
      see={
        <Go to="/instances/$instance" params={{ instance: first.id }} size="xs">
          <Seen name="why" />
        </Go>
      }
    />,
  ];
}

function lost({ lostNodes }: AttentionOut): ReactNode[] {
  return lostNodes.map((node) => (
    <Need
      key={`node ${node.incarnation}`}
      tone="bad"
      icon="node"
      title={<Go to="/queues" inherit c="inherit">{node.name}</Go>}
      detail={<Words name="lost" values={{ host: node.host }} />}
      at={node.leaseUntil}
      see={
        <Go to="/queues" size="xs">
          <Seen name="nodes" />
        </Go>
      }
    />
  ));
}

/** The letters of the last hour are counted: these are replayed. */
function hourBefore(instant: string): string {
  return new Date(Date.parse(instant) - 3_600_000).toISOString();
}

/** The number of due instances that something holds, if there are any; the server counts them up to a bound. */
function Held({ waiting: { count, more } }: { waiting: HeldInstances }) {
  return (
    count > 0 && (
      <>
        {" · "}
        <Words name="held" values={{ count, shown: more ? `${count}+` : count }} />
      </>
    )
  );
}

function held({ pausedJobs, pausedQueues }: AttentionOut): ReactNode[] {
  const jobs = pausedJobs.examples.map((job) => (
    <Need
      key={`job ${job.id}`}
      tone="warn"
      icon="pause"
      title={<ToJob name={job.name} />}
      detail={
        <>
          {job.note ?? <Plain name="pausedJob" />}
          <Held waiting={job.waiting} />
        </>
      }
      at={job.pausedAt}
      fix={{ kind: "resumeJob", job: job.name, id: job.id }}
    />
  ));
  const others = pausedJobs.count - pausedJobs.examples.length;
  const rest = others > 0 && (
    <Need
      key="jobs"
      tone="warn"
      icon="pause"
      title={
        <Go to="/jobs" search={{ status: "PAUSED" }} inherit c="inherit">
          <Words name="pausedMore" values={{ count: others, shown: pausedJobs.more ? `${others}+` : others }} />
        </Go>
      }
    />
  );
  const queues = pausedQueues.map((queue) => (
    <Need
      key={`queue ${queue.name}`}
      tone="warn"
      icon="pause"
      title={<Go to="/queues" inherit c="inherit">{queue.name}</Go>}
      detail={
        <>
          {queue.note ?? <Plain name="pausedQueue" />}
          <Held waiting={queue.waiting} />
        </>
      }
      at={queue.updatedAt}
      fix={{ kind: "resumeQueue", queue: queue.name }}
    />
  ));
  return [...queues, ...jobs, ...(rest ? [rest] : [])];
}

function underWay({ backfills, drifts, staleRefreshes }: AttentionOut): ReactNode[] {
  return [
    ...staleRefreshes.map((one) => (
      <Need
        key={`refresh ${one.jobId}`}
        tone="warn"
        icon="refresh"
        title={<Go to="/refresh/$job" params={{ job: one.job }} inherit c="inherit">{one.job}</Go>}
        detail={<Words name="stale" values={{ window: one.window }} />}
        at={one.oldest}
        fix={{ kind: "tick", job: one.job, id: one.jobId }}
      />
    )),
    ...drifts.map((one) => (
      <Need
        key={`drift ${one.id}`}
        tone="warn"
        icon="reconcilers"
        title={<Go to="/reconcilers/$reconciler" params={{ reconciler: one.name }} inherit c="inherit">{one.name}</Go>}
        detail={one.error ?? driftWords(one)}
        at={one.startedAt}
        fix={one.error !== null || one.missing > one.created ? { kind: "reconcile", reconciler: one.name } : undefined}
        see={
          <Go to="/reconcilers/$reconciler" params={{ reconciler: one.name }} size="xs">
            <Seen name="report" />
          </Go>
        }
      />
    )),
    ...backfills.map((one) => (
      <Need
        key={`backfill ${one.id}`}
        tone={one.status === "PAUSED" ? "warn" : "plain"}
        icon="backfill"
        title={<ToJob name={one.job} />}
        detail={<Words name={one.status === "PAUSED" ? "backfillPaused" : "backfill"} values={{ done: one.ended, total: one.total }} />}
        at={one.createdAt}
        fix={one.status === "PAUSED" ? { kind: "resumeBackfill", job: one.job, id: one.id } : undefined}
        see={
          <Go to="/jobs/$job" params={{ job: one.job }} size="xs">
            <Seen name="progress" />
          </Go>
        }
      />
    )),
  ];
}

/** Name what a reconciler found, and only that: rows missing, instances without a row, rows that cannot be read. */
function driftWords({ missing, created, surplus, faulty }: DriftOut): ReactNode {
  const found = [
    missing > 0 && <Words key="missing" name="driftMissing" values={{ missing, created }} />,
    (surplus ?? 0) > 0 && <Words key="surplus" name="driftSurplus" values={{ surplus }} />,
    faulty > 0 && <Words key="faulty" name="driftFaulty" values={{ count: faulty }} />,
  ].filter(Boolean);
  return found.map((words, place) => (
    // oxlint-disable-next-line react/no-array-index-key -- at most three parts in a fixed order
    <Fragment key={place}>
      {place > 0 && " · "}
      {words}
    </Fragment>
  ));
}
