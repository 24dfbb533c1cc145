"""Admission: it starts claimed rows, or sets aside those that may not run.

A ruling on each job decides about its rows. Rows whose host is held by its circuit breaker or its retry budget are given
back until the time that the gate of the host names, and so are retries beyond the rate of the governor. A row is also
given back after any error between claim and call.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum, auto

from horai.core.calls import KEY_PAUSE, KEY_UNAVAILABLE, HttpTarget, Target
from horai.core.job import Recipe
from horai.core.outcome import Release
from horai.core.wakes import MoveWaitingWake
from horai.db import claims, jobs
from horai.db.claims import Claim, ClaimedRow
from horai.db.jobs import Runnable
from horai.db.node_settings import WorkflowNodeSettings
from horai.db.pool import Platform
from horai.db.wakeups import Wakeups
from horai.engine.dispatch.attempts import Attempts, ClaimedJob
from horai.engine.dispatch.host_gates import HostGates
from horai.engine.dispatch.in_flight import InFlight
from horai.engine.dispatch.job_cache import JobCache
from horai.engine.dispatch.retry_limiter import RetryLimiter
from horai.engine.dispatch.sealed_payloads import UNREADABLE, open_payloads
from horai.engine.settler import Settlement, Settler

MOVED_PAUSE = timedelta(milliseconds=200)
BROKEN_PAUSE = timedelta(seconds=60)


class Ruling(Enum):
    """The decision about the claimed rows of a job."""

    RUN = auto()
    PARK = auto()
    CANCEL = auto()
    MOVE = auto()
    GIVE_BACK = auto()
    LOCK = auto()


def ruling_of(job: Runnable | None, handlers: frozenset[str]) -> Ruling:
    """Rule on the claimed rows of a job, in a process with these handlers. The first line that applies decides.

    | the job                            | ruling    | its rows                                                 |
    |------------------------------------|-----------|----------------------------------------------------------|
    | does not exist                     | GIVE_BACK | are due again after `BROKEN_PAUSE`                       |
    | is deleted                         | CANCEL    | are cancelled                                            |
    | is paused                          | PARK      | move to the parking lane                                 |
    | has a definition that is not valid | GIVE_BACK | are due again after `BROKEN_PAUSE`                       |
    | has a handler of another process   | MOVE      | are due again after `MOVED_PAUSE`; the janitor moves     |
    |                                    |           | them to the lane of their handler                        |
    | has secrets that this node lacks   | LOCK      | are due again after `KEY_PAUSE`, without an event        |
    | the key to open                    |           |                                                          |
    | is none of these                   | RUN       | start                                                    |
    """
    if job is None:
        return Ruling.GIVE_BACK
    if job.is_deleted:
        return Ruling.CANCEL
    if job.is_paused:
        return Ruling.PARK
    if job.recipe is None:
        return Ruling.GIVE_BACK
    if job.recipe.handler not in handlers:
        return Ruling.MOVE
    return Ruling.LOCK if _is_locked(job.recipe.target) else Ruling.RUN


def _is_locked(target: Target) -> bool:
    return isinstance(target, HttpTarget) and target.fault == KEY_UNAVAILABLE


class Admission:
    """The check between a claim and its calls."""

    def __init__(
        self,
        attempts: Attempts,
        settler: Settler,
        in_flight: InFlight,
        jobs: JobCache,
        wakeups: Wakeups,
        gates: HostGates,
        retries: RetryLimiter,
    ) -> None:
        self._attempts = attempts
        self._settler = settler
        self._in_flight = in_flight
        self._wakeups = wakeups
        self._jobs = jobs
        self._gates = gates
        self._retries = retries

    async def start(self, connection: Platform, claimed: Sequence[ClaimedRow], now: datetime) -> None:
        """Start, set aside or give back every claimed row."""
        if not claimed:
            return
        left = claimed
        try:
            job_ids = {row.held.job_id for row in claimed}
            known = await self._jobs.get(connection, job_ids)
            rulings = {job_id: ruling_of(known.get(job_id), self._attempts.handlers) for job_id in job_ids}
            if any(ruling is not Ruling.RUN for ruling in rulings.values()):
                refused = [row for row in claimed if rulings[row.held.job_id] is not Ruling.RUN]
                left = [row for row in claimed if rulings[row.held.job_id] is Ruling.RUN]
                await self._refuse(connection, refused, rulings, known)
            if self._retries.is_needed:  # before the gates, which count what they admit
                left = self._without(left, await self._retries.admit(connection, left, known))
            if waits := self._gates.admit(left, known):
                left = self._without(left, waits)
            if self._jobs.encrypted:
                left = await self._open(connection, left, known)
            starting = [_claimed_job(row, known[row.held.job_id]) for row in left]
            if any(job.is_chained for job in known.values()):
                starting = await self._with_node_settings(connection, starting)
            self._attempts.start(starting, now)
            left = []
        finally:
            for row in left:
                self._settler.submit(Settlement(row.held, Release()))

    async def _with_node_settings(self, connection: Platform, starting: Sequence[ClaimedJob]) -> Sequence[ClaimedJob]:
        """Give the instances that are nodes of workflows the settings of their nodes, by one query for all of them."""
        asked = [row.held.id for row, job, _ in starting if job.is_chained]
        found = await self._jobs.node_settings(connection, asked) if asked else {}
        if not found:
            return starting
        given: list[ClaimedJob] = []
        known: dict[int, tuple[Runnable, Recipe]] = {}  # by settings, which all items of a map share
        for row, job, recipe in starting:
            if (own := found.get(row.held.id)) is None:
                given.append((row, job, recipe))
                continue
            if id(own) not in known:
                known[id(own)] = _of_node(job, recipe, own)
            given.append((row, *known[id(own)]))
        return given

    async def _open(
        self, connection: Platform, rows: Sequence[ClaimedRow], known: Mapping[int, Runnable]
    ) -> Sequence[ClaimedRow]:
        """Open the payloads of encrypted jobs. Give rows without a key back; a broken payload is a failed attempt."""
        opened = await open_payloads(connection, self._jobs, rows)
        self._hold([row.held for row in opened.locked], {row.held.id: KEY_PAUSE for row in opened.locked})
        for row in opened.broken:
            self._attempts.fail(_claimed_job(row, known[row.held.job_id]), UNREADABLE)
        return opened.ready

    def _without(self, rows: Sequence[ClaimedRow], waits: Mapping[int, timedelta]) -> Sequence[ClaimedRow]:
        """Give back the rows that have to wait. Return the others."""
        self._hold([row.held for row in rows if row.held.id in waits], waits)
        return [row for row in rows if row.held.id not in waits]

    def _hold(self, held: Sequence[Claim], waits: Mapping[int, timedelta]) -> None:
        """Give rows back without an event: a host that is away for long would write one for each of its rows."""
        self._settler.submit(*(Settlement(each, Release(waits[each.id], is_quiet=True)) for each in held))

    async def _refuse(
        self,
        connection: Platform,
        rows: Sequence[ClaimedRow],
        rulings: Mapping[int, Ruling],
        known: Mapping[int, Runnable],
    ) -> None:
        """Park, cancel or give back rows that may not run. Also give back a row that could not be set aside."""
        held = [row.held for row in rows]
        parked = [h for h in held if rulings[h.job_id] is Ruling.PARK]
        cancelled = [h for h in held if rulings[h.job_id] is Ruling.CANCEL]
        moved = {h.job_id for h in held if rulings[h.job_id] is Ruling.MOVE}
        done: set[int] = set()
        try:
            if parked:
                done |= await claims.park_if_running(connection, parked)
            if cancelled:
                done |= await claims.cancel_if_running(connection, cancelled)
            if moved:
                await jobs.ask_relane(connection, sorted(moved))
                self._wakeups.publish(MoveWaitingWake())
        finally:
            for h in held:
                if h.id in done and not h.has_slot:
                    self._in_flight.drop([h])
                elif rulings[h.job_id] is Ruling.LOCK:
                    self._settler.submit(Settlement(h, Release(KEY_PAUSE, is_quiet=True)))
                else:
                    self._settler.submit(Settlement(h, Release(_pause_of(known.get(h.job_id)))))


def _pause_of(job: Runnable | None) -> timedelta:
    return BROKEN_PAUSE if job is None or job.recipe is None else MOVED_PAUSE


def _of_node(job: Runnable, recipe: Recipe, own: WorkflowNodeSettings) -> tuple[Runnable, Recipe]:
    """Return a job with the data interval and the retry policy of a node."""
    return replace(job, interval_from=own.interval_start), replace(recipe, retry=own.policy(recipe.retry))


def _claimed_job(row: ClaimedRow, job: Runnable) -> ClaimedJob:
    assert job.recipe is not None  # noqa: S101 — `ruling_of` checked it
    return row, job, job.recipe
