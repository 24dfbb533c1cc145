"""The verdict on an instance: its outcome, its node, what it waits for or what holds it."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from horai.core.calls import NATS_HANDLER
from horai.core.controls import LowPriority
from horai.core.host_gate import GateState
from horai.core.job import BUILTIN, Priority
from horai.core.root_cause import RootCause
from horai.core.shards import Role
from horai.core.states import CLAIMABLE, CancelReason, State
from horai.core.stuck import UNKNOWN
from horai.features.explain.facts import Facts, InstanceFact, Other, QueueFact
from horai.features.explain.phrases import RunWords as Say
from horai.features.explain.phrases import name_of
from horai.features.explain.verdicts import Hindrance, Hold, Verdict, VerdictText
from horai.features.explain.words import about, local
from horai.text.phrase import Joined, Phrase
from horai.time.overlap import MOST_QUEUED, Overlap

HOLDERS_NAMED = 5
"""Runs that hold the slots of a full queue, and that a sentence names."""
SOON = timedelta(seconds=2)
"""An instance that has been due for less than this is about to be claimed; after that, something is in its way."""


def story_of(facts: Facts, run: InstanceFact, at: datetime) -> VerdictText:
    """Return the verdict on an instance with the fire time `at`."""
    match run.state:
        case State.SUCCESS | State.DEAD:
            return VerdictText(Verdict.FIRED, _ended(run, at))
        case State.CANCELLED:
            return VerdictText(Verdict.CANCELLED, _cancelled(facts, run, at))
        case State.RUNNING:
            return VerdictText(Verdict.RUNNING, _running(facts, run))
        case State.BLOCKED:
            return VerdictText(Verdict.WAITING, _blocked(facts, run))
        case State.INIT | State.FAIL:
            return _waiting(facts, run)


def holds_of(facts: Facts, run: InstanceFact) -> list[Hold]:
    """Return everything that is in the way of an instance, first cause first; nothing if it runs or has ended."""
    if run.state is State.BLOCKED:
        return [Hold(Hindrance.PARENTS, _parents(facts))]
    if run.state not in CLAIMABLE:
        return []
    held = [*_holds(facts, run)]
    due = run.due or run.execute_time
    if due > facts.now:
        words = _suspended_for(facts) or Say.DUE_IN(duration=about(due - facts.now))
        held.append(Hold(Hindrance.NOT_DUE, words))
    elif facts.queue is not None and facts.queue.settings.rate is not None and facts.now - due >= SOON:
        held.append(Hold(Hindrance.RATE, _rate_of(facts.queue)))
    return held


def _rate_of(queue: QueueFact) -> Phrase:
    return Say.QUEUE_RATE(queue=queue.name, rate=str(queue.settings.rate))


def _blocked(facts: Facts, run: InstanceFact) -> Phrase:
    told = Say.BLOCKED(instance=run.id)
    return Say.WITH_REASON(what=told, reason=_parents(facts)) if facts.parents else told


def _parents(facts: Facts) -> Phrase:
    waits = [parent for parent in facts.parents if parent.state is not State.SUCCESS]
    if not waits:
        return Say.PARENTS()
    states = [Say.MOVING() if one.state is None else name_of(one.state) for one in waits]
    parents = Joined.LISTED.all(
        Say.PARENT(name=one.name, instance=one.instance_id, state=state)
        for one, state in zip(waits, states, strict=True)
    )
    return Say.ROOT_CAUSE(parents=parents, causes=_causes(facts.causes)) if facts.causes else parents


def _causes(causes: Sequence[RootCause]) -> Phrase:
    return Joined.LISTED.all(
        Say.DEAD_NODE(
            name=one.node,
            instance=one.instance_id,
            error=Say.DIED_WITH(error=one.error_code) if one.error_code else Say.DIED(),
        )
        for one in causes
    )


def _ended(run: InstanceFact, at: datetime) -> Phrase:
    started, ended = run.claimed_at or run.execute_time, run.finished_at or run.execute_time
    died = Say.DIED_WITH(error=run.error) if run.error else Say.DIED()
    return Say.FIRED(
        instance=_named(run),
        outcome=Say.SUCCEEDED() if run.state is State.SUCCESS else died,
        attempt=Say.FIRST_ATTEMPT() if run.attempt == 1 else Say.NTH_ATTEMPT(attempt=run.attempt),
        delay=about(started - at),
        duration=about(ended - started),
    )


def _running(facts: Facts, run: InstanceFact) -> Phrase:
    told = _runs(facts, run)
    if facts.open_nodes:
        nodes = Joined.LISTED.all(
            Say.PARENT(
                name=node.name,
                instance=node.instance_id,
                state=Say.MOVING() if node.state is None else name_of(node.state),
            )
            for node in facts.open_nodes
        )
        return Say.RUNS_WORKFLOW(runs=told, nodes=nodes)
    if facts.stuck is None:
        return told
    since = Say.SINCE(since=local(facts.stuck.stuck_at, facts.job.place))
    if facts.stuck.p95 is not None:
        return Say.RUNS_LONG(runs=told, since=since, p95=about(facts.stuck.p95))
    if facts.stuck.longest is not None:
        return Say.RUNS_LONG_OF_FEW(runs=told, since=since, longest=about(facts.stuck.longest))
    return Say.RUNS_LONG_UNKNOWN(runs=told, since=since, limit=about(UNKNOWN))


def _runs(facts: Facts, run: InstanceFact) -> Phrase:
    return Say.RUNS(
        instance=_named(run),
        node="" if run.node is None else Say.ON_NODE(node=run.node),
        since="" if run.claimed_at is None else Say.SINCE(since=local(run.claimed_at, facts.job.place)),
        attempt="" if run.attempt <= 1 else Say.IN_ATTEMPT(attempt=run.attempt),
    )


def _named(run: InstanceFact) -> Phrase:
    return Say.INSTANCE(instance=run.id, key="" if run.key is None else Say.OF_KEY(key=run.key))


def _cancelled(facts: Facts, run: InstanceFact, at: datetime) -> Phrase:
    when = "" if run.finished_at is None else Say.AT(at=local(run.finished_at, facts.job.place))
    told = Say.CANCELLED(instance=_named(run), at=when)
    match run.reason:
        case CancelReason.OVERLAP:
            return Say.WITH_REASON(what=told, reason=_overlapped(facts, at))
        case CancelReason.USER:
            return Say.CANCELLED_BY_USER(instance=_named(run), at=when)
        case CancelReason.SUPERSEDED:
            return Say.WITH_REASON(what=told, reason=Say.SUPERSEDED())
        case CancelReason.PARENT:
            return Say.WITH_REASON(what=told, reason=Say.PARENT_FAILED())
        case CancelReason.JOB_DELETED:
            return Say.WITH_REASON(what=told, reason=Say.JOB_WAS_DELETED())
        case CancelReason.SKIPPED:
            return Say.WITH_REASON(what=told, reason=Say.NODE_WAS_SKIPPED())
        case CancelReason.EXPIRED:
            return Say.WITH_REASON(what=told, reason=Say.HAD_EXPIRED())
        case None:
            return told


def _overlapped(facts: Facts, at: datetime) -> Phrase:
    """Say why a slot yielded to another run, as far as the current policy tells."""
    newer = [other for other in facts.others if other.is_slot and other.fire_time > at]
    older = [other for other in facts.others if other.fire_time <= at or not other.is_slot]
    match facts.job.timing.overlap:
        case Overlap.replace if newer:
            newest = max(newer, key=lambda other: (other.fire_time, other.id))
            return Say.REPLACED_BY(slot=local(newest.fire_time, facts.job.place), instance=newest.id)
        case Overlap.replace:
            return Say.REPLACED()
        case Overlap.queue:
            return Say.TOO_MANY_QUEUED(most=MOST_QUEUED)
        case Overlap.skip:
            return Say.YIELDED(other=_under_way(older))
        case Overlap.allow:
            return Say.NOT_ALLOWED_THEN(other=_under_way(older))


def _under_way(others: list[Other]) -> Phrase:
    first = _first_begun(others)
    return Say.ANOTHER_UNDER_WAY() if first is None else Say.UNDER_WAY(instance=first.id)


def _first_begun(others: list[Other]) -> Other | None:
    """Return the instance that began first; those that have not begun sort after all that have."""
    return min(others, key=lambda other: (other.claimed_at is None, other.claimed_at or other.fire_time), default=None)


def _waiting(facts: Facts, run: InstanceFact) -> VerdictText:
    """Return HELD with the first cause in its way, otherwise WAITING."""
    held = next(_holds(facts, run), None)
    if held is not None:
        return VerdictText(Verdict.HELD, Say.HELD(instance=_named(run), hold=held.words, failure=_failure(run)))
    due = run.due or run.execute_time
    if due > facts.now:
        return VerdictText(Verdict.WAITING, _until_due(facts, run, due))
    return VerdictText(Verdict.WAITING, _unclaimed(facts, run, facts.now - due))


def _failure(run: InstanceFact) -> Phrase | str:
    if run.state is not State.FAIL:
        return ""
    return (Say.AFTER_LOSS if run.is_lost else Say.AFTER_FAILURE)(attempt=run.attempt)


def _holds(facts: Facts, run: InstanceFact) -> Iterator[Hold]:
    job, queue = facts.job, facts.queue
    if job.paused_at is not None:
        yield Hold(Hindrance.JOB_PAUSED, pause_of(facts))
    if run.is_parked and run.is_slot and job.timing.overlap is not Overlap.allow:
        yield Hold(Hindrance.OVERLAP, _behind(facts))
    if queue is not None and queue.settings.paused:
        yield Hold(Hindrance.QUEUE_PAUSED, Say.QUEUE_PAUSED(queue=queue.name))
    if facts.lacks_key:
        yield Hold(Hindrance.KEY_UNAVAILABLE, Say.SECRETS_LOCKED())
    if facts.lacks_payload_key:
        yield Hold(Hindrance.KEY_UNAVAILABLE, Say.PAYLOAD_LOCKED())
    if queue is not None and queue.is_held:
        yield (
            Hold(Hindrance.DISPATCH_PAUSED, Say.DISPATCH_HELD())
            if facts.is_paused_by_hand
            else Hold(Hindrance.TENANT_PAUSED, Say.TENANT_PAUSED())
        )
    if (words := _held_by_mode(facts, run)) is not None:
        yield Hold(Hindrance.MODE, words)
    if (held := _held_by_host(facts, run)) is not None:
        yield held
    if (run.due or run.execute_time) > facts.now:
        return
    limit = None if queue is None else queue.settings.max_concurrency
    if queue is not None and limit is not None and (running := queue.running or 0) >= limit:
        words = _clogged(facts, queue.name, limit) if facts.holders else _full(facts, queue.name, running, limit)
        yield Hold(Hindrance.CONCURRENCY, words)
    if run.concurrency_key is not None and len(facts.key_holders) >= facts.key_limit:
        yield Hold(Hindrance.CONCURRENCY_KEY, _behind_key(facts, run.concurrency_key))
    most = None if queue is None else queue.tenant_limit
    if queue is not None and most is not None and queue.tenant_running >= most:
        yield Hold(Hindrance.TENANT_CONCURRENCY, Say.TENANT_FULL(running=queue.tenant_running, limit=most))
    yield from _missing_process(facts)


def _behind_key(facts: Facts, key: str) -> Phrase:
    """Name the instances that hold the places of its key, oldest first."""
    named = [Say.INSTANCE(instance=holder, key="") for holder in facts.key_holders[:HOLDERS_NAMED]]
    if (more := len(facts.key_holders) - HOLDERS_NAMED) > 0:
        named.append(Say.MORE_HOLDERS(count=more))
    return Say.KEY_FULL(key=key, limit=facts.key_limit, holders=Joined.LISTED.all(named))


def _full(facts: Facts, queue: str, running: int, limit: int) -> Phrase:
    """Name the runs that hold the slots of the queue, longest first; none if all of them have ended meanwhile."""
    if not facts.long_holders:
        return Say.QUEUE_FULL(queue=queue, running=running, limit=limit)
    place = facts.job.place
    named = [
        Say.HOLDER_SINCE(instance=one.id, job=one.job, since=Say.SINCE(since=local(one.claimed_at, place)))
        for one in facts.long_holders[:HOLDERS_NAMED]
    ]
    if (more := running - len(named)) > 0:
        named.append(Say.MORE_HOLDERS(count=more))
    return Say.QUEUE_FULL_OF(queue=queue, running=running, limit=limit, holders=Joined.LISTED.all(named))


def _clogged(facts: Facts, queue: str, limit: int) -> Phrase:
    """Name the stuck runs that hold all slots of the queue, longest first."""
    named = [Say.HOLDER(instance=one.run.id, job=one.run.job) for one in facts.holders[:HOLDERS_NAMED]]
    if (more := len(facts.holders) - len(named)) > 0:
        named.append(Say.MORE_HOLDERS(count=more))
    return Say.QUEUE_CLOGGED(queue=queue, limit=limit, holders=Joined.LISTED.all(named))


def _held_by_mode(facts: Facts, run: InstanceFact) -> Phrase | None:
    """Return how the governor holds the instance, or a freeze of its low-priority work."""
    limits, due = facts.controls, run.due or run.execute_time
    is_given_back = run.state is State.INIT and bool(run.retry_count) and run.execute_time <= facts.now < due
    if is_given_back and limits.retry_rate is not None:
        return Say.MODE_RETRIES(rate=f"{limits.retry_rate:g}", at=local(due, facts.job.place))
    if is_given_back and limits.is_short_first:
        return Say.MODE_LONG(at=local(due, facts.job.place))
    if facts.priority is Priority.core:
        return None
    if limits.is_core_only:
        return Say.MODE_CORE()
    if facts.priority is not Priority.low:
        return None
    if limits.low is LowPriority.PAUSED or facts.is_frozen:
        return Say.MODE_LOW()
    is_late = facts.now - due >= SOON
    return Say.MODE_HALVED(rate=f"{limits.low_rate:g}") if limits.low_rate is not None and is_late else None


def _held_by_host(facts: Facts, run: InstanceFact) -> Hold | None:
    """Return the hold by the breaker, the budget or the room of its host: of a due instance, or of one that was given back.

    An instance that was given back is INIT and due later than its execute time, which has come.
    """
    host, due = facts.held_host, run.due or run.execute_time
    is_given_back = run.state is State.INIT and run.execute_time <= facts.now < due
    if host is None or not (is_given_back or due <= facts.now):
        return None
    since, at = Say.SINCE(since=local(host.since, facts.job.place)), local(host.next_try, facts.job.place)
    match host.state:
        case GateState.OPEN:
            return Hold(Hindrance.BREAKER, Say.BREAKER_OPEN(host=host.host, since=since, at=at))
        case GateState.HALF_OPEN:
            return Hold(Hindrance.BREAKER, Say.BREAKER_PROBES(host=host.host, since=since))
        case GateState.RAMPING:
            return Hold(Hindrance.BREAKER, Say.BREAKER_RAMP(host=host.host))
        case GateState.FULL:
            return Hold(Hindrance.HOST_FULL, Say.HOST_FULL(host=host.host, since=since, at=at))
        case GateState.RECOVERING if is_given_back:
            return Hold(Hindrance.BREAKER, Say.BREAKER_LINE(host=host.host, at=at))
        case GateState.RETRIES_HELD if run.retry_count:
            return Hold(Hindrance.RETRY_BUDGET, Say.RETRY_BUDGET(host=host.host, at=at))
        case _:
            return None


def _missing_process(facts: Facts) -> Iterator[Hold]:
    handler = facts.job.handler
    if handler.startswith(NATS_HANDLER):
        if Role.executor not in facts.roles or (facts.handlers is not None and handler not in facts.handlers):
            yield Hold(Hindrance.NO_EXECUTOR, Say.NO_BROKER_NODE(broker=handler.removeprefix(NATS_HANDLER)))
    elif not handler or handler.startswith(BUILTIN):
        if Role.executor not in facts.roles:
            words = Say.NO_NODE_FOR(handler=handler) if handler else Say.NO_HTTP_NODE()
            yield Hold(Hindrance.NO_EXECUTOR, words)
    elif Role.worker not in facts.roles:
        yield Hold(Hindrance.NO_WORKER, Say.NO_WORKER(handler=handler))
    elif facts.handlers is not None and handler not in facts.handlers:
        yield Hold(Hindrance.NO_HANDLER, Say.NO_HANDLER(handler=handler))


def pause_of(facts: Facts) -> Phrase:
    """Say since when the job is paused, with its note."""
    job = facts.job
    return Say.PAUSED(
        since="" if job.paused_at is None else Say.SINCE(since=local(job.paused_at, job.place)),
        note=Say.NOTED(note=job.note) if job.note else "",
    )


def _behind(facts: Facts) -> Phrase:
    before = _first_begun([other for other in facts.others if not other.is_parked])
    overlap = facts.job.timing.overlap.name
    return Say.TURN_COMES(overlap=overlap) if before is None else Say.BEHIND(overlap=overlap, instance=before.id)


def _until_due(facts: Facts, run: InstanceFact, due: datetime) -> Phrase:
    who, when = _named(run), local(due, facts.job.place)
    if run.is_rewinding:
        return Say.COMPENSATES(instance=who, at=when)
    if run.state is State.FAIL and run.is_lost:
        return Say.BESIDE_A_CRASH(instance=who, attempt=run.attempt, at=when)
    if run.state is State.FAIL and run.error:
        return Say.FAILED_WITH(instance=who, attempt=run.attempt, error=run.error, at=when)
    if run.state is State.FAIL:
        return Say.FAILED(instance=who, attempt=run.attempt, at=when)
    if (reason := _suspended_for(facts)) is not None:
        return Say.SUSPENDED_FOR(instance=who, reason=reason)
    if run.is_suspended:
        return Say.SUSPENDED(instance=who, at=when)
    if facts.sensor_until is not None and run.attempt:
        return Say.SENSOR_ASKS(instance=who, at=when, deadline=local(facts.sensor_until, facts.job.place))
    if run.is_slot and facts.job.timing.jitter:
        return Say.WAITS_BY_JITTER(instance=who, at=when)
    return Say.WAITS(instance=who, at=when)


def _suspended_for(facts: Facts) -> Phrase | None:
    """Return what a suspended function waits for, other than a time or a signal."""
    if facts.version is not None:
        return Say.VERSION_AWAITED(version=facts.version)
    return _awaits(facts) if facts.awaited else None


def _awaits(facts: Facts) -> Phrase:
    """Name the instances that the function has called, oldest first."""
    named = [Say.HOLDER(instance=child.id, job=child.job) for child in facts.awaited[:HOLDERS_NAMED]]
    if (more := len(facts.awaited) - HOLDERS_NAMED) > 0:
        named.append(Say.MORE_HOLDERS(count=more))
    return Say.AWAITS(children=Joined.LISTED.all(named))


def _unclaimed(facts: Facts, run: InstanceFact, waited: timedelta) -> Phrase:
    """Say what may delay an instance that nothing holds. The cause is not recorded, so the sentence is a guess."""
    if waited < SOON:
        return Say.SOON_CLAIMED(instance=_named(run), duration=about(waited))
    guesses = [Say.OTHERS_BEFORE()]
    if facts.queue is not None and facts.queue.settings.rate is not None:
        guesses.insert(0, _rate_of(facts.queue))
    if facts.job.handler and facts.handlers is None:
        guesses.append(Say.MAYBE_NO_HANDLER(handler=facts.job.handler))
    return Say.UNCLAIMED(instance=_named(run), duration=about(waited), guess=Joined.EITHER.all(guesses))
