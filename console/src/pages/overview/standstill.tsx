import { Fragment, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import type { AttentionOut, BlockedRunOut, HolderOut, HoldInForceOut, StuckCauseOut } from "@/api";
import { Duration, Go, When } from "@/parts";
import type { Fix } from "./fixes";
import { Fault, Need, Seen, ToJob, Words } from "./Need";

/** What holds up others: full queues with the runs that hold their slots, and runs that take too long. It is listed first. */
export function holdups({ clogged, full, stuck }: AttentionOut): ReactNode[] {
  return [
    ...clogged.map((one) => (
      <Need
        key={`clogged ${one.name}`}
        tone="bad"
        icon="queues"
        title={<Go to="/queues" inherit c="inherit">{one.name}</Go>}
        detail={
          <>
            <Words name="clogged" values={{ count: one.slots, waiting: one.waiting }} /> <Holders runs={one.holders} />
          </>
        }
        at={one.since}
        fix={{ kind: "limit", queue: one.name, isClogged: true }}
        orFix={cancelOf(one.holders[0])}
      />
    )),
    ...full.map((one) => (
      <Need
        key={`full ${one.name}`}
        tone="bad"
        icon="queues"
        title={<Go to="/queues" inherit c="inherit">{one.name}</Go>}
        detail={
          <>
            <Words name="full" values={{ count: one.slots, waiting: one.waiting }} />
            {" · "}
            <Words name={one.holders.length > 0 ? "heldBy" : "heldByEnded"} values={{}} /> <Holders runs={one.holders} />
          </>
        }
        at={one.since}
        fix={{ kind: "limit", queue: one.name, isClogged: false }}
        orFix={cancelOf(one.holders[0])}
      />
    )),
    ...stuck.map((one) => (
      <Need
        key={`stuck ${one.id}`}
        tone={one.waiting + one.blocks > 0 ? "bad" : "warn"}
        icon="instances"
        title={<ToJob name={one.job} />}
        detail={
          <Go to="/instances/$instance" params={{ instance: one.id }} inherit c="inherit">
            <Stuck run={one} />
          </Go>
        }
        at={one.startedAt}
        fix={cancelOf(one)}
      />
    )),
  ];
}

/** The runs that hold the slots of a queue, longest first. */
function Holders({ runs }: { runs: readonly HolderOut[] }) {
  return runs.slice(0, FEW).map((run, place) => (
    <Fragment key={run.id}>
      {place > 0 && ", "}
      <Go to="/instances/$instance" params={{ instance: run.id }} inherit c="inherit">
        {`${run.job} ${run.id}`}
      </Go>{" "}
      (<When at={run.startedAt} as="relative" />)
    </Fragment>
  ));
}

/** Why a run counts as stuck, its queue, and what waits behind it. */
function Stuck({ run }: { run: StuckCauseOut }) {
  return (
    <>
      {run.p95Ms !== null && (
        <>
          <Words name="stuck" values={{ id: run.id }} /> <Duration ms={run.p95Ms} />
        </>
      )}
      {run.p95Ms === null && run.longestMs !== null && (
        <>
          <Words name="stuckOfFew" values={{ id: run.id }} /> <Duration ms={run.longestMs} />
        </>
      )}
      {run.p95Ms === null && run.longestMs === null && <Words name="stuckUnknown" values={{ id: run.id }} />}
      {" · "}
      <Words name="inQueue" values={{ queue: run.queue }} />
      {run.waiting > 0 && (
        <>
          {" · "}
          <Words name="behind" values={{ count: run.waiting }} />
        </>
      )}
      {run.blocks > 0 && (
        <>
          {" · "}
          <Words name="blocking" values={{ count: run.blocks }} />
        </>
      )}
    </>
  );
}

function cancelOf(run: { job: string; id: string } | undefined): Fix | undefined {
  return run && { kind: "cancel", job: run.job, instance: run.id };
}

/** Workflow runs behind a dead node. */
export function blockedRuns({ blocked }: AttentionOut): ReactNode[] {
  return blocked.map((one) => (
    <Need
      key={`blocked ${one.id}`}
      tone="bad"
      icon="workflows"
      title={
        <Go to="/workflows/$workflow/runs/$run" params={{ workflow: one.workflow, run: one.id }} inherit c="inherit">
          {one.workflow}
        </Go>
      }
      detail={one.rootCauses.map((cause) => (
        <Fragment key={cause.node}>
          <Go to="/instances/$instance" params={{ instance: cause.instanceId }} inherit c="inherit">
            <Words name="blocked" values={{ node: cause.node, count: cause.blocks.length }} />
          </Go>{" "}
          <Fault code={cause.errorCode} />{" "}
        </Fragment>
      ))}
      at={one.rootCauses[0]?.diedAt ?? one.fireTime}
      fix={rerunOf(one)}
      see={
        <Go to="/workflows/$workflow/runs/$run" params={{ workflow: one.workflow, run: one.id }} size="xs">
          <Seen name="run" />
        </Go>
      }
    />
  ));
}

const FEW = 3;

/** A run that one dead node blocks goes on from that node; with several, the page of the run names them. */
function rerunOf({ workflow, id, rootCauses }: BlockedRunOut): Fix | undefined {
  const [cause, ...others] = rootCauses;
  return cause && others.length === 0 ? { kind: "rerun", workflow, run: id, node: cause.node } : undefined;
}

/** What does not reach its receiver: alerts, events and backups. */
export function undelivered({ failingChannels, parkedSinks, failingBackups }: AttentionOut): ReactNode[] {
  return [
    ...failingChannels.map((one) => (
      <Need
        key={`channel ${one.name}`}
        tone="bad"
        icon="warning"
        title={<Go to="/alerts" inherit c="inherit">{one.name}</Go>}
        detail={
          <Words
            name={one.status === "FAILED" ? "channelFailed" : "channelRetried"}
            values={{ name: one.name, error: one.error ?? one.httpStatus ?? "" }}
          />
        }
        at={one.since}
        fix={{ kind: "test", channel: one.name }}
      />
    )),
    ...parkedSinks.map((one) => (
      <Need
        key={`sink ${one.name}`}
        tone="bad"
        icon="warning"
        title={<Go to="/sinks" inherit c="inherit">{one.name}</Go>}
        detail={<Words name="sinkParked" values={{ name: one.name, error: one.lastError ?? "" }} />}
        at={one.failingSince}
        fix={{ kind: "resumeSink", sink: one.name }}
      />
    )),
    ...failingBackups.map((one) => (
      <Need
        key="backup"
        tone="bad"
        icon="warning"
        title={<Words name="backup" values={{}} />}
        detail={<Words name={one.failedAt === null ? "backupOverdue" : "backupFailed"} values={{ error: one.error ?? "" }} />}
        at={one.failedAt ?? one.successAt}
      />
    )),
  ];
}

/** What limits or holds dispatch: modes of the governor, pauses and freezes by hand. */
export function limits({ modes, holds }: AttentionOut): ReactNode[] {
  return [
    ...holds.map((hold) => (
      <Need
        key={`hold ${hold.scope} ${hold.what} ${hold.since}`}
        tone={hold.what === "dispatch" ? "bad" : "warn"}
        icon="pause"
        title={
          <Go to="/governor" inherit c="inherit">
            <Words name={`hold.${hold.what}`} values={{}} />
          </Go>
        }
        detail={<Held hold={hold} />}
        at={hold.since}
        fix={{ kind: "release", what: hold.what, scope: hold.scope }}
        see={<SeeGovernor />}
      />
    )),
    ...modes.map((one) => (
      <Need
        key={`mode ${one.mode}`}
        tone="warn"
        icon="governor"
        title={<Go to="/governor" inherit c="inherit">{one.mode}</Go>}
        detail={<Words name={`mode.${one.mode}`} values={{}} />}
        at={one.since}
        see={<SeeGovernor />}
      />
    )),
  ];
}

function SeeGovernor() {
  return (
    <Go to="/governor" size="xs">
      <Seen name="governor" />
    </Go>
  );
}

/** Who holds it, why, and until when. */
function Held({ hold }: { hold: HoldInForceOut }) {
  const { t } = useTranslation("overview");
  const by = t(`attention.by.${hold.scope}`, { actor: hold.actor ?? "" });
  return (
    <>
      {by}
      {hold.note !== null && ` · ${hold.note}`}
      {hold.expiresAt !== null && (
        <>
          {" · "}
          {t("attention.until")} <When at={hold.expiresAt} />
        </>
      )}
    </>
  );
}
