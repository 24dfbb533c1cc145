"""The settler: the stage that writes the outcomes of attempts, in batches.

An outcome is kept until the database has stored it: through lost connections, lost answers to COMMIT, rows that another
transaction has locked, and rows whose text the database refuses. An outcome whose row has moved on is stored as a late
result. Plain successes, which are most outcomes, go in one statement of their own; the rest goes in one transaction per
batch.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import attrgetter
from typing import NamedTuple

import asyncpg
import structlog

from horai.core.health import EngineHealth
from horai.core.outcome import Bury, Complete, Decision, Release, RetryAt, Withdraw
from horai.core.settings import EngineSettings
from horai.core.wakes import KeyWake, OverlapWake, QueueWake, RunsWake
from horai.db import claims, queues, settlements
from horai.db.claims import Claim, Claimable, LateResult
from horai.db.pool import GONE, Platform
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.dispatch.in_flight import InFlight
from horai.operations.failure_log import Origin, failures
from horai.operations.keyring import Keyring
from horai.operations.loop_time import LoopTime
from horai.operations.sealed_outcomes import sealed_decisions
from horai.operations.sealed_values import SealedJob
from horai.operations.traces import Traces

log = structlog.get_logger(__name__)

UNSTORABLE = "OUTCOME_UNSTORABLE"
IDLE = timedelta(seconds=60)
LOCKED_PAUSE = timedelta(milliseconds=50)
LOCK_TIMEOUT = timedelta(milliseconds=20)
"""The lock timeout of the settler's connection: how long its first try may wait for a locked row."""

HELD_UP = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)
NO_FAULT_OF_A_ROW = (
    asyncpg.TransactionRollbackError,
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,
    asyncpg.PostgresSystemError,
    asyncpg.InvalidTransactionStateError,
)
"""Errors that no row has caused: the database cannot write now (full disk, stand-by, cancelled statement)."""

_CLAIMED_AT = attrgetter("claimed_at")


class Settlement(NamedTuple):
    """A decision on a claim.

    `is_quiet`: the row may be gone without an error, because an awaited outcome arrived in another way. `origin` names
    a failed attempt in the log; None for any other.
    """

    held: Claim
    decision: Decision
    is_quiet: bool = False
    origin: Origin | None = None
    is_sealed: bool = False
    """True if the values of an encrypted job are sealed: an outcome that is tried again is not sealed twice."""


@dataclass(slots=True)
class Inbox:
    """The outcomes that wait to be written, and the signals of the settlers."""

    signals: list[asyncio.Event]
    waiting: list[Settlement] = field(default_factory=list[Settlement])
    has_keys: bool = False
    """True once a claim of this process had a concurrency key."""

    def put(self, settlements: Iterable[Settlement], batch: int) -> None:
        """Add outcomes. Signal the first settler at once, and the others when a full batch waits."""
        self.waiting += settlements
        self.signals[0].set()
        if len(self.waiting) >= batch:
            for signal in self.signals:
                signal.set()

    def take(self, limit: int) -> list[Settlement]:
        """Return the outcomes that have waited longest, at most one per instance.

        Two claims of one instance differ only in their fences.
        """
        first, others = self.waiting[:limit], self.waiting[limit:]
        chosen = {settlement.held.id: settlement for settlement in reversed(first)}
        if len(chosen) < len(first):
            others = [settlement for settlement in first if chosen[settlement.held.id] is not settlement] + others
        self.waiting = others
        return [chosen[id_] for id_ in sorted(chosen)]


class Settler:
    """The stage that ends claims."""

    name = "settler"

    def __init__(
        self,
        line: StageConnection,
        in_flight: InFlight,
        wakeups: Wakeups,
        health: EngineHealth,
        settings: EngineSettings,
        gated: Collection[int] = (),
    ) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self.gated = gated
        """The jobs whose overlap gates must be told when a run has ended."""
        self.chained: Collection[int] = ()
        """The jobs that belong to workflows, whose runs must be told as well."""
        self.encrypted: Mapping[int, SealedJob] = {}
        """The jobs whose results and error texts are sealed, with `keyring`."""
        self.keyring = Keyring()
        self.loop_time = LoopTime()
        self.on_written: Callable[[], None] = lambda: None
        """Called after each batch that was written."""
        self.on_settled: Callable[[Sequence[Claim], bool], None] | None = None
        """Called with claims whose outcomes were written, and whether they took effect."""
        self.traces: Traces | None = None
        self._begun = 0
        """The time of the current batch for its spans."""
        self._in_flight = in_flight
        self._wakeups = wakeups
        self._health = health
        self._settings = settings
        self._inbox = Inbox([self.signal])
        self._warmed: Platform | None = None
        self._is_roused = True
        """True if the next step opens the connection without an outcome to write."""
        self._now: datetime | None = None
        """The time of the current step."""

    def mate(self, line: StageConnection) -> "Settler":
        """Return a second settler that shares the inbox, on its own connection.

        One settler writes while the other reads its answer.
        """
        mate = Settler(line, self._in_flight, self._wakeups, self._health, self._settings, self.gated)
        mate.chained, mate.on_written = self.chained, self.on_written
        mate.traces, mate.on_settled = self.traces, self.on_settled
        mate.encrypted, mate.keyring, mate.loop_time = self.encrypted, self.keyring, self.loop_time
        mate.name = f"{self.name} {len(self._inbox.signals) + 1}"
        self._inbox.signals.append(mate.signal)
        mate._inbox = self._inbox
        return mate

    def submit(self, *settlements: Settlement) -> None:
        """Accept outcomes. They will be written, however long that takes."""
        if settlements:
            self._in_flight.worked([s.held for s in settlements if not isinstance(s.decision, Release)])
            self._inbox.put(settlements, self._settings.settle_batch)

    def rouse(self) -> None:
        """Open the connection again if it rests, while the claimed calls run."""
        if not self.line.is_open:
            self._is_roused = True
            self.signal.set()

    def expect_keys(self) -> None:
        """Publish the concurrency keys of settled claims from now on: this process has claimed one."""
        self._inbox.has_keys = True

    async def step(self, now: datetime) -> datetime:
        """Write one batch. Outcomes whose rows are locked go to the back and are retried after 50 ms."""
        inbox, self._now = self._inbox, now
        if 0 < len(inbox.waiting) < self._settings.settle_batch:
            await asyncio.sleep(self._settings.settle_wait.total_seconds())
        batch = locked = inbox.take(self._settings.settle_batch)
        self._health.unsettled = len(inbox.waiting) + len(batch)
        if not batch:
            if self.line.is_open or self._is_roused:
                await self._warm(await self.line.get())
                self._is_roused = False
            return now + IDLE
        if self.traces is not None:
            self._begun = self.traces.now()
        try:
            if self.encrypted:
                batch = locked = await self._sealed(await self.line.get(), batch)
            work = self._write(await self.line.get(), batch)
            if self.loop_time.shares.is_shared:
                work = self.loop_time.share(work, self._in_flight.tenants_of(s.held for s in batch))
            locked = await work
        finally:
            inbox.waiting += locked  # after an error, the whole batch: outcomes already written are recognised later
            self._health.unsettled = len(inbox.waiting)
        self.on_written()
        if inbox.has_keys and (
            keys := {(s.held.job_id, key) for s in batch if (key := s.held.concurrency_key) is not None}
        ):
            self._wakeups.publish(KeyWake(keys))
        if self.gated:
            self._wakeups.publish(OverlapWake({s.held.job_id for s in batch if s.held.job_id in self.gated}))
        if self.chained:
            ended = [s.held for s in batch if isinstance(s.decision, Complete | Bury | Withdraw)]
            self._wakeups.publish(RunsWake([held.id for held in ended if held.job_id in self.chained]))
        if len(inbox.waiting) == len(locked):
            return now + (LOCKED_PAUSE if locked else IDLE)
        return now

    async def _sealed(self, connection: Platform, batch: list[Settlement]) -> list[Settlement]:
        """Seal the results and error texts of encrypted jobs, with one statement for the data key of each job."""
        of_job: dict[int, list[int]] = {}
        for index, settlement in enumerate(batch):
            if settlement.held.job_id in self.encrypted and not settlement.is_sealed:
                of_job.setdefault(settlement.held.job_id, []).append(index)
        sealed = list(batch)
        for job_id, indices in of_job.items():
            decisions = [batch[index].decision for index in indices]
            job = self.encrypted[job_id]
            kept = await sealed_decisions(connection, self.keyring, job, job_id, decisions)
            for index, decision in zip(indices, kept, strict=True):
                sealed[index] = batch[index]._replace(decision=decision, is_sealed=True)
        return sealed

    async def _warm(self, connection: Platform) -> None:
        """Prepare and plan the common statement during the first claim, so that no outcome waits for it."""
        if self._warmed is not connection:
            await claims.finish_if_running(connection, 0, [])
            self._warmed = connection

    async def _write(self, connection: Platform, batch: Sequence[Settlement]) -> list[Settlement]:
        """Settle a batch and return the locked outcomes. A row that the database refuses does not fail the others."""
        left = list(batch)
        try:
            left = await self._finish(connection, batch)
            return await self._settle(connection, left)
        except HELD_UP:
            return await self._write_around(connection, left)
        except (*GONE, *NO_FAULT_OF_A_ROW):
            raise
        except asyncpg.PostgresError as error:
            if len(batch) == 1:
                log.error("an outcome cannot be stored", instance=batch[0].held.id, error=repr(error))
                return await self._settle(connection, [_unstorable(batch[0], error)])
            log.warning("a row failed its batch; settling the rows one by one", rows=len(batch), error=repr(error))
        return [locked for settlement in batch for locked in await self._write(connection, [settlement])]

    async def _write_around(self, connection: Platform, batch: list[Settlement]) -> list[Settlement]:
        """Settle the outcomes without a permit, and return the others for a later try.

        Another transaction holds permits (their queue is being changed) or a whole table.
        """
        seated = [settlement for settlement in batch if settlement.held.has_slot]
        if not seated or len(seated) == len(batch):
            return batch
        return seated + await self._write(connection, [s for s in batch if not s.held.has_slot])

    async def _finish(self, connection: Platform, batch: Sequence[Settlement]) -> list[Settlement]:
        """Write the plain successes of one node in one statement. Return the remaining outcomes."""
        node = batch[0].held.node
        plain = [
            (held, decision)
            for held, decision, *_ in batch
            if type(decision) is Complete and held.node == node and not held.has_slot
        ]
        if not plain:
            return list(batch)
        try:
            done = await claims.finish_if_running(connection, node, plain)
        except HELD_UP:
            return list(batch)
        ended = [held for held, _ in plain if held.id in done]
        self._health.observe_outcomes(time.monotonic(), succeeded=self._observe_ends(ended, {"SUCCESS": len(ended)}))
        if self.traces is not None:
            self.traces.settled([one for one in plain if one[0].id in done], self._begun)
        self._in_flight.drop(ended)
        if self.on_settled is not None:
            self.on_settled(ended, True)
        if len(done) == len(batch):
            return []
        return [settlement for settlement in batch if settlement.held.id not in done]

    async def _settle(self, connection: Platform, batch: Sequence[Settlement]) -> list[Settlement]:
        """Write the decisions, the late results and the freed permits of ended calls in one transaction."""
        if not batch:
            return []
        async with connection.transaction():
            applied = await settlements.apply(connection, [(s.held, s.decision) for s in batch])
            left = [settlement for settlement in batch if settlement.held.id not in applied.ids]
            still = await claims.still_running(connection, [s.held for s in left]) if left else set[int]()
            gone = [settlement for settlement in left if settlement.held.id not in still]
            late = [_late(s) for s in gone if not s.is_quiet and not isinstance(s.decision, Release)]
            kept = await claims.keep_late(connection, late) if late else set[int]()
            freed = await _free_slots(connection, [s.held for s in batch if s.held.has_slot])
        if applied.instead:
            batch = [s._replace(decision=applied.instead.get(s.held.id, s.decision)) for s in batch]
        self._health.late_results += len(kept)
        self._note([settlement for settlement in batch if settlement.held.id in applied.ids])
        _log_failures([s for s in batch if s.held.id in applied.ids], is_late=False)
        # Gone, and not kept as late: this outcome was written before, and the answer to its COMMIT was lost.
        _log_failures([s for s in gone if s.held.id not in kept and not s.is_quiet], is_late=False)
        _log_failures([s for s in gone if s.held.id in kept], is_late=True)
        self._in_flight.drop([s.held for s in batch if s.held.id not in still])
        if self.on_settled is not None:
            stale = {s.held.id for s in gone if s.held.id in kept or isinstance(s.decision, Release)}
            ended = [s.held for s in batch if s.held.id not in still]
            self.on_settled([held for held in ended if held.id not in stale], True)
            self.on_settled([held for held in ended if held.id in stale], False)
        self._tell(applied.woken, freed)
        return [settlement for settlement in left if settlement.held.id in still]

    def _tell(self, woken: Sequence[Claimable], freed: Collection[int]) -> None:
        self._wakeups.announce(woken)
        for queue_id in freed:
            self._wakeups.publish(QueueWake(queue_id))

    def _observe_ends(self, ended: Sequence[Claim], outcomes: Mapping[str, int]) -> list[int]:
        """Count attempts that have ended, for monitoring. Return their jobs."""
        totals, job_ids = self._health.totals, [held.job_id for held in ended]
        totals.outcomes.update(outcomes)
        if self._now is not None:
            totals.observe_durations(self._now, job_ids, [*map(_CLAIMED_AT, ended)])
        return job_ids

    def _note(self, applied: Sequence[Settlement]) -> None:
        succeeded = [s.held.job_id for s in applied if isinstance(s.decision, Complete)]
        failed = [s.held.job_id for s in applied if not isinstance(s.decision, Complete | Release)]
        dead = [s.held.job_id for s in applied if isinstance(s.decision, Bury)]
        self._health.observe_outcomes(time.monotonic(), failed=failed, succeeded=succeeded, dead=dead)
        self._health.retry_backlog += sum(isinstance(s.decision, RetryAt) for s in applied)
        ended = [s.held for s in applied if not isinstance(s.decision, Release)]
        self._observe_ends(ended, Counter(_outcome_name(s.decision) for s in applied))
        if self.traces is not None:
            self.traces.settled([(s.held, s.decision) for s in applied], self._begun)


def _outcome_name(decision: Decision) -> str:
    """Return the name under which monitoring counts a decision."""
    match decision:
        case Complete():
            return "SUCCESS"
        case Withdraw():
            return "CANCELLED"
        case Release():
            return "RELEASED"
        case RetryAt(is_loss=True) | Bury(is_loss=True):
            return "LOST"
        case RetryAt():
            return "FAIL"
        case Bury():
            return "DEAD"


async def _free_slots(connection: Platform, ended: Sequence[Claim]) -> set[int]:
    """Free the permits of ended calls, in any state of their rows. Return the queues that may have room again."""
    freed: set[int] = set()
    for node in {held.node for held in ended}:
        freed |= await queues.free_slots(connection, [(h.id, h.fence) for h in ended if h.node == node], node)
    return freed


def _unstorable(settlement: Settlement, error: Exception) -> Settlement:
    message = f"The database refused the outcome of the attempt: {type(error).__name__}."
    return Settlement(settlement.held, Bury(UNSTORABLE, message, ("unrecoverable",)), origin=settlement.origin)


def _log_failures(settled: Sequence[Settlement], *, is_late: bool) -> None:
    for held, decision, _, origin, _ in settled:
        if origin is not None and isinstance(decision, RetryAt | Bury):
            failures.note(origin, held, decision, is_late=is_late)


def _late(settlement: Settlement) -> LateResult:
    match settlement.decision:
        case RetryAt(_, code, message) | Bury(code, message):
            return LateResult(settlement.held, "FAIL", code, message)
        case _:
            return LateResult(settlement.held, "SUCCESS", None, None)
