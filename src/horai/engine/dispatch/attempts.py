"""Attempts under way: each claimed row becomes a call, and its outcome goes to the settler.

A runner takes one row after another. As soon as a call makes it wait, the next row gets its own runner: calls run side
by side, and a thousand calls that never wait cost one task. A runner yields to the event loop every `STRETCH` seconds.
Tenants take turns.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Protocol

import structlog

from horai.core.addresses import TenantReach
from horai.core.calls import KEY_PAUSE, NATS_HANDLER, Call
from horai.core.encryption import EnvelopeBroken
from horai.core.errors import KeyUnavailable
from horai.core.health import EngineHealth
from horai.core.job import Recipe
from horai.core.outcome import (
    DONE,
    SUCCESS,
    TIMEOUT,
    Accepted,
    Ending,
    FailedRetryable,
    FailedUnrecoverable,
    Lost,
    NotSent,
    Outcome,
    Release,
    outcome_of,
    plan,
)
from horai.core.retry import ALONE_AFTER
from horai.core.tenant_shares import TenantLines
from horai.core.wakes import OutcomeWake
from horai.db import claims
from horai.db.claims import Claim, ClaimedRow
from horai.db.jobs import Runnable
from horai.db.stage_connection import StageConnection
from horai.engine.dispatch.host_rooms import HostRooms
from horai.engine.dispatch.job_cache import JobCache
from horai.engine.dispatch.scans import HTTP
from horai.engine.dispatch.sealed_payloads import UNREADABLE, sealed_payload
from horai.engine.dispatch.start_delays import StartLimits, observe_starts
from horai.engine.lease import Lease
from horai.engine.settler import Settlement, Settler
from horai.operations.failure_log import Origin
from horai.operations.loop_time import LoopTime
from horai.operations.sealed_values import SealedJob, open_text

log = structlog.get_logger(__name__)

STOPPED = FailedRetryable("NODE_STOPPED", "The node stopped before the call had ended.")
STOPPED_WAITING = FailedRetryable("NODE_STOPPED", "The node stopped while the outcome was awaited.")
NOT_OURS = NotSent()
"""Nothing is sent for a claim that no longer belongs to this node: another node may hold row and permit.

This also applies when the node holds a lease again: a node that was fenced then has another incarnation.
"""
UNREADABLE_PAUSE = timedelta(seconds=1)
STRETCH = 0.003
"""Seconds for which calls that never wait may keep the event loop from reading answers and starting other work."""
ANYWHERE = TenantReach()
NOT_REPORTED = FailedRetryable(TIMEOUT, "Accepted with 202, but no outcome was reported in time.")
_ROW = itemgetter(0)
"""The row of a claimed job."""


class Executor(Protocol):
    """A way to make one attempt. It raises only when it is cancelled."""

    def run(self, call: Call) -> "Outcome | Awaitable[Ending]":
        """Return the outcome of an attempt that has ended already, or an awaitable of it, which is awaited at once."""
        ...


ClaimedJob = tuple[ClaimedRow, Runnable, Recipe]
"""A claimed row that may be run, with its job and recipe."""


class Attempts:
    """The calls of this process. `executors` are by handler; the empty handler is HTTP.

    `alone` are by handler as well: they run instances that were lost `ALONE_AFTER` times, each call alone in a process.
    """

    def __init__(
        self,
        executors: Mapping[str, Executor],
        settler: Settler,
        lease: Lease,
        jobs: JobCache,
        line: StageConnection,
        health: EngineHealth,
        alone: Mapping[str, Executor] = MappingProxyType({}),
        loop_time: LoopTime | None = None,
    ) -> None:
        self._executors = executors
        self._signed = frozenset(name for name in executors if not name or name.startswith(NATS_HANDLER))
        """The handlers whose calls leave Horai: they are signed with the tenant's secrets."""
        self._alone = alone
        self._settler = settler
        self._lease = lease
        self._secrets_of = jobs.secrets_of
        self._reach_of = jobs.reach_of
        self._jobs = jobs
        self._line = line
        self._looking = asyncio.Lock()
        self._health = health
        self._waiting: TenantLines[ClaimedJob] = TenantLines()
        self.on_room: Callable[[], None] = lambda: None
        """Called when the line of a tenant that `room_of` had no room for is half as long."""
        self._wanted_by: dict[int, int] = {}
        """The tenants that had no room, and how long their lines may be when there is some."""
        self.loop_time = loop_time or LoopTime()
        self._is_look_set = False
        self.limits = StartLimits()
        self.host_rooms = HostRooms()
        self._is_relieved = False
        """True while a runner waits for its first turn."""
        self._runners_begun = 0
        self._is_trusted = False
        self._runners: set[asyncio.Task[None]] = set()
        self._awaited: dict[tuple[int, int], asyncio.Event] = {}

    @property
    def handlers(self) -> frozenset[str]:
        """Return the handlers that this process can run."""
        return frozenset(self._executors)

    def start(self, claimed_jobs: Sequence[ClaimedJob], now: datetime) -> None:
        """Take over claimed rows. Each of them will be settled or released."""
        observe_starts(self._health, [*map(_ROW, claimed_jobs)], self.limits, now)
        self.host_rooms.claimed(claimed_jobs)
        tenants = {job.tenant_id for _, job, _ in claimed_jobs}
        for tenant in tenants:
            self.loop_time.account(tenant)
            self._waiting.add(
                tenant,
                claimed_jobs if len(tenants) == 1 else [each for each in claimed_jobs if each[1].tenant_id == tenant],
            )
        self._relieve()

    def room_of(self, tenant: int, most: int) -> int:
        """Return how many more rows of a tenant may wait for their calls to begin, at most `most` in all.

        There is room when half of the line is free: rows are claimed by the dozen, not one by one. There is none while
        the tenant has used more than its share of the event loop. A caller that gets 0 is told when there is room.
        """
        if (wait := self.loop_time.wait(self.loop_time.account(tenant))) > 0.0:
            self._look_after(wait)
            return 0
        length = self._waiting.length(tenant)
        if length <= most // 2:
            return most - length
        self._wanted_by[tenant] = most // 2
        return 0

    def _look_after(self, wait: float) -> None:
        if not self._is_look_set:
            self._is_look_set = True
            asyncio.get_running_loop().call_later(wait, self._look)

    def _look(self) -> None:
        self._is_look_set = False
        self.on_room()

    def _relieve(self) -> None:
        """Start a runner for the waiting rows, unless one waits for its first turn."""
        if self._wanted_by and any(self._waiting.length(each) <= half for each, half in self._wanted_by.items()):
            self._wanted_by.clear()
            self.on_room()
        if self._waiting and not self._is_relieved:
            self._is_relieved = True
            runner = asyncio.create_task(self._run())
            self._runners.add(runner)
            runner.add_done_callback(self._runners.discard)

    async def _run(self) -> None:
        """Begin waiting rows one after another. After `STRETCH` seconds without a wait another runner goes on, a turn later."""
        self._is_relieved = False
        self._runners_begun += 1
        # Calls that succeeded without waiting: submitted together, before any other task runs.
        done: list[Settlement] = []
        pause_at = self._stretch()
        while self._waiting:
            claimed_job = self._waiting.take()
            run = self._begin(claimed_job)
            if run is SUCCESS:
                done.append(Settlement(claimed_job[0].held, DONE))
            else:
                if done:
                    self._settler.submit(*done)
                    done.clear()
                if isinstance(run, Awaitable):
                    begun = self._runners_begun
                    attended = self._attend(claimed_job, run)
                    if self.loop_time.shares.is_shared:
                        await self.loop_time.run(attended, claimed_job[1].tenant_id)
                    else:
                        await attended
                    has_waited = self._runners_begun != begun or not self._is_relieved
                    if has_waited:  # the others had their turn
                        pause_at = self._stretch()
                        continue
                else:
                    self._settle(claimed_job, run)
                self._is_trusted = self._lease.holds()
            if time.monotonic() >= pause_at:
                break
        self._settler.submit(*done)
        self._relieve()

    def _stretch(self) -> float:
        """Check the lease. Return until when calls may begin one after another, which is not beyond the lease."""
        self._is_trusted = self._lease.holds()
        return min(time.monotonic() + STRETCH, self._lease.trusted_until)

    def _begin(self, claimed_job: ClaimedJob) -> Outcome | Awaitable[Ending]:
        """Begin an attempt. Return its outcome if it has ended already, otherwise an awaitable."""
        row, job, recipe = claimed_job
        held, handler = row[0], recipe.handler
        if handler == HTTP:
            self.host_rooms.begun(recipe.target)
        try:
            if not self._is_trusted or held.node != self._lease.incarnation:
                return NOT_OURS
            if row.has_large_payload:
                return self._run_large(claimed_job)
            call = self._signed_call(claimed_job) if handler in self._signed else call_of(row, job, recipe)
            return (self._executor(held, handler) if held.lost else self._executors[handler]).run(call)
        except Exception as error:  # only this row failed: the rows behind it go on
            log.error("an attempt failed unexpectedly", instance=held.id, error=repr(error))
            return STOPPED

    async def _attend(self, claimed_job: ClaimedJob, run: Awaitable[Ending]) -> None:
        """Follow one attempt from its first wait to its settlement. Every way out settles or releases."""
        held, is_quiet = claimed_job[0].held, False
        outcome: Ending = STOPPED
        try:
            self._relieve()
            outcome = await run
            if isinstance(outcome, Accepted):
                await self._reported(held, outcome.remaining)
                is_quiet = True
                outcome = NOT_REPORTED
        except Exception as error:  # the settler gets its outcome; the rows behind it go on
            log.error("an attempt failed unexpectedly", instance=held.id, error=repr(error))
        finally:
            if outcome is SUCCESS:
                self._settler.submit(Settlement(held, DONE, is_quiet))
            else:
                ended = STOPPED_WAITING if isinstance(outcome, Accepted) else outcome
                self._settle(claimed_job, ended, is_quiet=is_quiet)

    def _settle(self, claimed_job: ClaimedJob, outcome: Outcome | Lost, *, is_quiet: bool = False) -> None:
        row, _, recipe = claimed_job
        decision = plan(recipe.retry, row.held.retry_count, outcome, random.uniform, row.held.lost)
        self._settler.submit(Settlement(row.held, decision, is_quiet, _origin(claimed_job, outcome)))

    async def _run_large(self, claimed_job: ClaimedJob) -> Ending:
        """Run an attempt whose payload was too large to come with its claim."""
        row, job, recipe = claimed_job
        try:
            payload = await self._payload_of(row.held)
            if job.is_encrypted and payload is not None:
                payload = await self._opened(job, payload)
        except LookupError:
            return NotSent(UNREADABLE_PAUSE)
        except KeyUnavailable:
            return NotSent(KEY_PAUSE, is_quiet=True)
        except EnvelopeBroken:
            return UNREADABLE
        call = self._signed_call(claimed_job) if recipe.handler in self._signed else call_of(row, job, recipe)
        return await outcome_of(self._executor(row.held, recipe.handler).run(call._replace(payload=payload)))

    def _signed_call(self, claimed_job: ClaimedJob) -> Call:
        row, job, recipe = claimed_job
        return call_of(row, job, recipe, self._secrets_of(job), self._reach_of(job))

    async def _opened(self, job: Runnable, payload: str) -> str:
        sealed = sealed_payload(SealedJob(job.tenant_id, job.name), payload)
        async with self._looking:
            try:
                return await open_text(await self._line.get(), self._jobs.keyring, sealed)
            except (KeyUnavailable, EnvelopeBroken):
                raise
            except Exception as error:
                self._line.drop()
                log.warning("a data key could not be read", job=job.name, error=repr(error))
                raise LookupError from error

    def fail(self, claimed_job: ClaimedJob, outcome: FailedRetryable) -> None:
        """Settle an attempt that failed before its call."""
        row, _, recipe = claimed_job
        decision = plan(recipe.retry, row.held.retry_count, outcome, random.uniform)
        self._settler.submit(Settlement(row.held, decision, origin=_origin(claimed_job, outcome)))

    def _executor(self, held: Claim, handler: str) -> Executor:
        """Return the executor. An instance that may have killed its nodes gets a process of its own."""
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
        """Wait until the outcome is reported or the time is over. If the wake of a report is lost, the row shows it.

        A cancel does not end the wait: the target continues the work it has begun, so the call keeps its permit.
        """
        reported = self._awaited.setdefault((held.id, held.fence), asyncio.Event())
        try:
            async with asyncio.timeout(within.total_seconds()):
                await reported.wait()
                while await self._is_awaited(held):  # every client may notify: trust only the row
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
                log.warning("an instance could not be read", instance=held.id, error=repr(error))
                return True

    def hear(self, wake: OutcomeWake) -> None:
        """Stop waiting for this outcome: it was reported."""
        if (reported := self._awaited.get((wake.instance_id, wake.fence))) is not None:
            reported.set()

    async def break_off(self) -> None:
        """Cancel running calls with the outcome that the node stopped, and release rows that have not begun."""
        while self._waiting:
            row, _, recipe = self._waiting.take()
            if recipe.handler == HTTP:
                self.host_rooms.begun(recipe.target)
            self._settler.submit(Settlement(row.held, Release()))
        for runner in list(self._runners):
            runner.cancel()
        await asyncio.gather(*self._runners, return_exceptions=True)
        self._is_relieved = False  # a runner that was cancelled before its first turn did not say so


def _origin(claimed_job: ClaimedJob, outcome: Outcome | Lost) -> Origin | None:
    """Return the origin that the log needs to name a failure; None for any other outcome."""
    if not isinstance(outcome, FailedRetryable | FailedUnrecoverable | Lost):
        return None
    row, job, recipe = claimed_job
    trace = call_of(row, job, recipe).idempotency_key
    traceback = None if job.is_encrypted or isinstance(outcome, Lost) else outcome.traceback
    return Origin(job.tenant, job.name, trace, traceback, job.is_encrypted)


def call_of(
    row: ClaimedRow, job: Runnable, recipe: Recipe, secrets: tuple[str, ...] = (), reach: TenantReach = ANYWHERE
) -> Call:
    """Return the call of a claimed row."""
    (
        (id_, job_id, attempt, fence, node, failures, *_),
        _lane,
        _due,
        slot,
        key,
        fire_time,
        execute_time,
        born_for,
        payload,
        _,
    ) = row
    new: Any = getattr(tuple, "__new__")  # noqa: B009 — as in `claimed_rows`: half the time of the constructor
    return new(
        Call,
        (
            id_, job_id, job.name, job.tenant, key, fire_time, execute_time, attempt, fence, born_for, slot, payload,
            recipe.target, recipe.timeout, secrets, node, failures, job.tenant_id, reach, job.is_encrypted, None, job.interval_from,
        ),
    )  # fmt: skip
