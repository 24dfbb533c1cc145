"""What there is to say of an instance: what it came to, where it runs, what it waits for or is held by."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from horai.core.definition import HOUSE
from horai.core.explain.facts import Facts, Other, Run
from horai.core.explain.verdicts import Hindrance, Hold, Told, Verdict
from horai.core.explain.words import about, local
from horai.core.overlap import MOST_QUEUED, Overlap
from horai.core.shards import Role
from horai.core.states import CLAIMABLE, CancelReason, State

SOON = timedelta(seconds=2)
"""An instance that has been due for less is about to be claimed; for longer, something is in its way."""


def story_of(facts: Facts, run: Run, at: datetime) -> Told:
    """The verdict on an instance with the fire time `at`."""
    match run.state:
        case State.SUCCESS | State.DEAD:
            return Told(Verdict.FIRED, _ended(run, at))
        case State.CANCELLED:
            return Told(Verdict.CANCELLED, _cancelled(facts, run, at))
        case State.RUNNING:
            return Told(Verdict.RUNNING, _running(facts, run))
        case State.BLOCKED:
            return Told(Verdict.WAITING, _blocked(facts, run))
        case State.INIT | State.FAIL:
            return _waiting(facts, run)


def holds_of(facts: Facts, run: Run) -> list[Hold]:
    """All that is in the way of an instance, the first thing first; nothing for what runs or has ended."""
    if run.state is State.BLOCKED:
        return [Hold(Hindrance.PARENTS, _parents(facts))]
    if run.state not in CLAIMABLE:
        return []
    held = [*_holds(facts, run)]
    due = run.due or run.execute_time
    if due > facts.now:
        held.append(Hold(Hindrance.NOT_DUE, f"its time comes in {about(due - facts.now)}"))
    elif facts.queue is not None and facts.queue.settings.rate is not None and facts.now - due >= SOON:
        rate = f"its queue {facts.queue.name} starts no more than {facts.queue.settings.rate}"
        held.append(Hold(Hindrance.RATE, rate))
    return held


def _blocked(facts: Facts, run: Run) -> str:
    told = f"instance {run.id} waits for what comes before it in its workflow"
    return f"{told}: {_parents(facts)}" if facts.parents else told


def _parents(facts: Facts) -> str:
    waits = [parent for parent in facts.parents if parent.state is not State.SUCCESS]
    if not waits:
        return "what comes before it in its workflow"
    named = [
        f"{one.name} (instance {one.instance_id}, {'moving' if one.state is None else one.state.name})" for one in waits
    ]
    return ", ".join(named)


def _ended(run: Run, at: datetime) -> str:
    started, ended = run.claimed_at or run.execute_time, run.finished_at or run.execute_time
    attempt = "its first attempt" if run.attempt == 1 else f"attempt {run.attempt}"
    times = f"which began {about(started - at)} after its time and took {about(ended - started)}"
    outcome = "SUCCESS" if run.state is State.SUCCESS else f"DEAD with {run.error}" if run.error else "DEAD"
    return f"fired as instance {run.id}{_of_key(run)}: {outcome} in {attempt}, {times}"


def _running(facts: Facts, run: Run) -> str:
    since = "" if run.claimed_at is None else f" since {local(run.claimed_at, facts.job.place)}"
    node = "" if run.node is None else f" on node {run.node}"
    attempt = "" if run.attempt <= 1 else f" (attempt {run.attempt})"
    return f"instance {run.id}{_of_key(run)} runs{node}{since}{attempt}"


def _of_key(run: Run) -> str:
    return "" if run.key is None else f" of the key {run.key!r}"


def _cancelled(facts: Facts, run: Run, at: datetime) -> str:
    when = "" if run.finished_at is None else f" at {local(run.finished_at, facts.job.place)}"
    who = f"instance {run.id}{_of_key(run)} was cancelled{when}"
    match run.reason:
        case CancelReason.OVERLAP:
            return f"{who}: {_overlapped(facts, at)}"
        case CancelReason.USER:
            return f"{who} by a user"
        case CancelReason.SUPERSEDED:
            return f"{who}: a later request for its key took its place"
        case CancelReason.PARENT:
            return f"{who}: what it depends on in its workflow did not succeed"
        case CancelReason.JOB_DELETED:
            return f"{who}: its job was deleted"
        case None:
            return who


def _overlapped(facts: Facts, at: datetime) -> str:
    """Why a slot yielded to another run, as far as the policy of today tells."""
    newer = [other for other in facts.others if other.is_slot and other.fire_time > at]
    older = [other for other in facts.others if other.fire_time <= at or not other.is_slot]
    match facts.job.timing.overlap:
        case Overlap.replace if newer:
            newest = max(newer, key=lambda other: (other.fire_time, other.id))
            slot = local(newest.fire_time, facts.job.place)
            return f"the slot of {slot} (instance {newest.id}) took its place, by overlap replace"
        case Overlap.replace:
            return "a newer slot took its place, by overlap replace"
        case Overlap.queue:
            return f"{MOST_QUEUED:,} slots waited before it, and overlap queue lets no more wait"
        case Overlap.skip:
            return f"{_under_way(older)}, and by overlap skip a slot yields to it"
        case Overlap.allow:
            return f"{_under_way(older)}, which the job did not allow then"


def _under_way(others: list[Other]) -> str:
    first = _first_begun(others)
    return "another run of the job was under way" if first is None else f"instance {first.id} was still under way"


def _first_begun(others: list[Other]) -> Other | None:
    """The one that began first; those that have not begun come after all that have."""
    return min(others, key=lambda other: (other.claimed_at is None, other.claimed_at or other.fire_time), default=None)


def _waiting(facts: Facts, run: Run) -> Told:
    """Held by the first thing in its way, or waiting for its time."""
    held = next(_holds(facts, run), None)
    who = f"instance {run.id}{_of_key(run)}"
    if held is not None:
        return Told(Verdict.HELD, f"{who} is held: {held.words}{_after_failure(run)}")
    due = run.due or run.execute_time
    if due > facts.now:
        return Told(Verdict.WAITING, f"{who} {_until_due(facts, run, due)}")
    return Told(
        Verdict.WAITING, f"{who} has been due for {about(facts.now - due)}{_in_the_way(facts, facts.now - due)}"
    )


def _holds(facts: Facts, run: Run) -> Iterator[Hold]:
    job, queue = facts.job, facts.queue
    if job.paused_at is not None:
        yield Hold(Hindrance.JOB_PAUSED, pause_of(facts))
    if run.is_parked and run.is_slot and job.timing.overlap is not Overlap.allow:
        yield Hold(Hindrance.OVERLAP, _behind(facts))
    if queue is not None and queue.settings.paused:
        yield Hold(Hindrance.QUEUE_PAUSED, f"its queue {queue.name} is paused")
    if (run.due or run.execute_time) > facts.now:
        return
    limit = None if queue is None else queue.settings.max_concurrency
    if queue is not None and limit is not None and (queue.running or 0) >= limit:
        words = f"its queue {queue.name} runs {queue.running} at once, and {limit} is its limit"
        yield Hold(Hindrance.CONCURRENCY, words)
    yield from _nobody_there(facts)


def _nobody_there(facts: Facts) -> Iterator[Hold]:
    handler = facts.job.handler
    if not handler or handler.startswith(HOUSE):
        if Role.executor not in facts.roles:
            what = "makes HTTP calls" if not handler else f"runs {handler}"
            yield Hold(Hindrance.NO_EXECUTOR, f"no live node {what}")
    elif Role.worker not in facts.roles:
        yield Hold(Hindrance.NO_WORKER, f"no worker is alive, and its function {handler} needs one")
    elif facts.handlers is not None and handler not in facts.handlers:
        yield Hold(Hindrance.NO_HANDLER, f"no live worker has its function {handler}")


def pause_of(facts: Facts) -> str:
    """Since when the job is paused, and what was noted."""
    job = facts.job
    since = "" if job.paused_at is None else f" since {local(job.paused_at, job.place)}"
    return f"the job is paused{since}" + (f" ({job.note})" if job.note else "")


def _behind(facts: Facts) -> str:
    before = _first_begun([other for other in facts.others if not other.is_parked])
    if before is None:
        return f"by overlap {facts.job.timing.overlap.name} slots wait for one another, and its turn is about to come"
    return f"by overlap {facts.job.timing.overlap.name} it waits until instance {before.id} has ended"


def _until_due(facts: Facts, run: Run, due: datetime) -> str:
    when = local(due, facts.job.place)
    if run.state is State.FAIL:
        return (
            f"failed in attempt {run.attempt}{f' with {run.error}' if run.error else ''}: it is tried again at {when}"
        )
    if run.is_slot and facts.job.timing.jitter:
        return f"waits until {when}: so far behind its slots the jitter puts this job"
    return f"waits until {when}"


def _after_failure(run: Run) -> str:
    return f"; it failed in attempt {run.attempt}" if run.state is State.FAIL else ""


def _in_the_way(facts: Facts, waited: timedelta) -> str:
    """What may keep an instance that nothing holds; nobody has told, so that it is said as a guess."""
    if waited < SOON:
        return " and is about to be claimed"
    guesses = ["others may be before it"]
    if facts.queue is not None and facts.queue.settings.rate is not None:
        guesses.insert(0, f"its queue {facts.queue.name} starts no more than {facts.queue.settings.rate}")
    if facts.job.handler and facts.handlers is None:
        guesses.append(f"no live worker may have its function {facts.job.handler}")
    return f" and nobody has claimed it: {', or '.join(guesses)}"
