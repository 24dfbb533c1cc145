"""Attempts under way: each claimed row becomes a call, and whatever comes of it is handed to the settler.

A runner takes one row after the other. As soon as a call makes it wait, the next row gets a runner of its own: calls run
side by side, and a thousand that never wait cost one task. A runner lets the event loop go on every `STRETCH` seconds.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Protocol

import structlog

from horai.core.calls import Call
from horai.core.health import EngineHealth
from horai.core.job import Recipe
from horai.core.outcome import (
    DONE,
    SUCCESS,
    TIMEOUT,
    Accepted,
    FailedRetryable,
    FailedUnrecoverable,
    NotSent,
    Outcome,
    Release,
    outcome_of,
    plan,
)
from horai.core.retry import ALONE_AFTER
from horai.db import claims
from horai.db.claims import Claim, ClaimedRow
from horai.db.jobs import Runnable
from horai.db.stage_connection import StageConnection
from horai.engine.dispatch.job_cache import JobCache
from horai.engine.lease import NodeLease
from horai.engine.settler import Settlement, Settler
from horai.operations.failure_log import Origin

log = structlog.get_logger(__name__)

STOPPED = FailedRetryable("NODE_STOPPED", "The node stopped before the call had ended.")
STOPPED_WAITING = FailedRetryable("NODE_STOPPED", "The node stopped while the outcome was awaited.")
NOT_OURS = NotSent()
"""Nothing is sent for a claim that is not this node's own any more: row and slot may be somebody else's.

Nor when it holds a lease again: a node that was fenced has done so as another incarnation.
"""
UNREADABLE_PAUSE = timedelta(seconds=1)
STRETCH = 0.003
"""Seconds that calls which never wait may keep the event loop from reading answers and beginning other work."""
NOT_REPORTED = FailedRetryable(TIMEOUT, "Accepted with 202, but no outcome was reported in time.")


class Executor(Protocol):
    """Makes one attempt; never raises but for cancellation."""

    def run(self, call: Call) -> "Outcome | Awaitable[Outcome | Accepted]":
        """Return the outcome of an attempt that has ended already, or an awaitable of it, which is awaited at once."""
        ...


ClaimedJob = tuple[ClaimedRow, Runnable, Recipe]
"""A claimed row that may be run, and how."""


class Attempts:
    """The calls of this process. `executors` are by handler; the empty one is for HTTP.

    `alone` are by handler as well: they run what was lost `ALONE_AFTER` times, each call alone in a process.
    """

    def __init__(
        self,
        executors: Mapping[str, Executor],
        settler: Settler,
        keeper: NodeLease,
        jobs: JobCache,
        line: StageConnection,
        vitals: EngineHealth,
        alone: Mapping[str, Executor] = MappingProxyType({}),
    ) -> None:
        self._executors = executors
        self._alone = alone
        self._settler = settler
        self._keeper = keeper
        self._secrets_of = jobs.secrets_of
        self._line = line
        self._looking = asyncio.Lock()
        self._vitals = vitals
        self._waiting: deque[ClaimedJob] = deque()
        self._is_trusted = False
        self._runners: set[asyncio.Task[None]] = set()
        self._awaited: dict[tuple[int, int], asyncio.Event] = {}

    @property
    def handlers(self) -> frozenset[str]:
        """What can be run here."""
        return frozenset(self._executors)

    def start(self, errands: Sequence[ClaimedJob], now: datetime) -> None:
        """Takes claimed rows over; each will be settled, whatever comes."""
        delays = [(now - row.execute_time).total_seconds() for row, _, _ in errands]
        self._vitals.observe_delays(time.monotonic(), delays)
        retried = sum(1 for row, _, _ in errands if row.held.retry_count)
        self._vitals.retry_backlog = max(self._vitals.retry_backlog - retried, 0)
        self._waiting.extend(errands)
        self._relieve()

    def _relieve(self) -> None:
        """Start a runner for the rows that wait."""
        if self._waiting:
            runner = asyncio.create_task(self._run())
            self._runners.add(runner)
            runner.add_done_callback(self._runners.discard)

    async def _run(self) -> None:
        done: list[
            Settlement
        ] = []  # calls that succeeded without a wait: submitted together, before anything else can run
        pause_at = self._stretch()
        while self._waiting:
            errand = self._waiting.popleft()
            run = self._begin(errand)
            if run is SUCCESS:
                done.append(Settlement(errand[0].held, DONE))
                if time.monotonic() < pause_at:
                    continue
            self._settler.submit(*done)
            done.clear()
            if run is not SUCCESS:
                await self._attend(errand, run)
            elif self._waiting:
                await asyncio.sleep(0)
            pause_at = self._stretch()
        self._settler.submit(*done)

    def _stretch(self) -> float:
        """Return until when calls may begin one after the other: not beyond the lease, which is looked at here."""
        self._is_trusted = self._keeper.holds()
        return min(time.monotonic() + STRETCH, self._keeper.trusted_until)

    def _begin(self, errand: ClaimedJob) -> Outcome | Awaitable[Outcome | Accepted]:
        """Begin an attempt: its outcome, if it has ended already."""
        row, job, recipe = errand
        held, handler = row[0], recipe.handler
        try:
            if not self._is_trusted or held.node != self._keeper.incarnation:
                return NOT_OURS
            if row.has_large_payload:
                return self._run_large(errand)
            call = call_of(row, job, recipe, () if handler else self._secrets_of(job))
            return (self._executor(held, handler) if held.lost else self._executors[handler]).run(call)
        except Exception as error:  # of this row alone: the rows behind it are not to blame
            log.error("an attempt failed unexpectedly", instance=held.id, error=repr(error))
            return STOPPED

    async def _attend(self, errand: ClaimedJob, run: Outcome | Awaitable[Outcome | Accepted]) -> None:
        """One attempt from its first wait to its settlement; every way out settles or releases."""
        row, _, recipe = errand
        held, is_quiet = row.held, False
        outcome: Outcome | Accepted = STOPPED
        try:
            if isinstance(run, Awaitable):
                self._relieve()
                outcome = await run
            else:
                outcome = run
            if isinstance(outcome, Accepted):
                await self._reported(held, outcome.remaining)
                is_quiet = True
                outcome = NOT_REPORTED
        except Exception as error:  # its outcome is with the settler; the rows behind it are not to blame
            log.error("an attempt failed unexpectedly", instance=held.id, error=repr(error))
        finally:
            if isinstance(outcome, Accepted):
                outcome = STOPPED_WAITING
            if outcome is SUCCESS:
                settlement = Settlement(held, DONE, is_quiet)
            else:
                decision = plan(recipe.retry, held.retry_count, outcome, random.uniform)
                settlement = Settlement(held, decision, is_quiet, _origin(errand, outcome))
            self._settler.submit(settlement)

    async def _run_large(self, errand: ClaimedJob) -> Outcome | Accepted:
        """With a payload that did not come with its claim."""
        row, job, recipe = errand
        try:
            payload = await self._payload_of(row.held)
        except LookupError:
            return NotSent(UNREADABLE_PAUSE)
        call = call_of(row, job, recipe, () if recipe.handler else self._secrets_of(job))
        return await outcome_of(self._executor(row.held, recipe.handler).run(call._replace(payload=payload)))

    def _executor(self, held: Claim, handler: str) -> Executor:
        """Choose the process of its own for an instance that may have killed its nodes."""
        if held.lost >= ALONE_AFTER and handler in self._alone:
            return self._alone[handler]
        return self._executors[handler]

    async def _payload_of(self, held: Claim) -> str | None:
        async with self._looking:
            try:
                return await claims.payload_of(await self._line.get(), held)
            except LookupError:
                raise
            except Exception as error:
                self._line.drop()
                log.warning("a payload could not be read", instance=held.id, error=repr(error))
                raise LookupError from error

    async def _reported(self, held: Claim, within: timedelta) -> None:
        """Returns when the outcome has been reported, or its time is over. Reported unheard, the row tells.

        A cancel does not end it: what the target has begun goes on, and so the call keeps its slot.
        """
        reported = self._awaited.setdefault((held.id, held.fence), asyncio.Event())
        try:
            async with asyncio.timeout(within.total_seconds()):
                await reported.wait()
                while await self._is_awaited(held):  # anybody may notify: only the row is believed
                    reported.clear()
                    await reported.wait()
        except TimeoutError:
            pass
        finally:
            del self._awaited[held.id, held.fence]

    async def _is_awaited(self, held: Claim) -> bool:
        async with self._looking:
            try:
                return await claims.is_awaited(await self._line.get(), held)
            except Exception as error:
                self._line.drop()
                log.warning("an instance could not be looked at", instance=held.id, error=repr(error))
                return True

    def outcome_reported(self, instance_id: int, fence: int) -> None:
        """Nobody needs to wait for this outcome any more."""
        if (reported := self._awaited.get((instance_id, fence))) is not None:
            reported.set()

    async def break_off(self) -> None:
        """Ends what still runs, with the outcome that the node stopped; what has not begun goes back."""
        while self._waiting:
            self._settler.submit(Settlement(self._waiting.popleft()[0].held, Release()))
        for runner in list(self._runners):
            runner.cancel()
        await asyncio.gather(*self._runners, return_exceptions=True)


def _origin(errand: ClaimedJob, outcome: Outcome) -> Origin | None:
    """Return what the log needs to name a failure; None for any other outcome."""
    if not isinstance(outcome, FailedRetryable | FailedUnrecoverable):
        return None
    row, job, recipe = errand
    return Origin(job.tenant, job.name, call_of(row, job, recipe, ()).idempotency_key, outcome.traceback)


def call_of(row: ClaimedRow, job: Runnable, recipe: Recipe, secrets: tuple[str, ...]) -> Call:
    """The attempt a claim stands for."""
    (id_, job_id, attempt, fence, node, *_), _lane, _due, slot, key, fire_time, execute_time, born_for, payload, _ = row
    new: Any = getattr(tuple, "__new__")  # noqa: B009 — as in `claimed_rows`: half the time of the constructor
    return new(
        Call,
        (
            id_, job_id, job.name, job.tenant, key, fire_time, execute_time, attempt, fence, born_for, slot, payload,
            recipe.target, recipe.timeout, secrets, node,
        ),
    )  # fmt: skip
