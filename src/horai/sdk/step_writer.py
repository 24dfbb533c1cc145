"""The writer of records: the steps of all running functions of a process, in shared statements.

A function that finishes a step while no statement is under way is served at once; those that finish meanwhile share the
next one. A record is kept until the database has stored or refused it: through lost connections, lost answers to COMMIT
and rows that another transaction has locked. Every statement may be repeated.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import structlog

from horai.core.calls import Call
from horai.db import claims
from horai.db.claims import Claim
from horai.db.pool import Platform
from horai.db.stage_connection import StageConnection
from horai.features.steps import store
from horai.features.steps.calls import CallOf
from horai.features.steps.child_calls import serve_calls
from horai.features.steps.rules import StepId, StepRecord, StepReport
from horai.features.steps.store import ReportOf, StartOver, WaitOf
from horai.sdk.suspension import ClaimLost, RewindAsked

log = structlog.get_logger(__name__)

AT_ONCE = 500
"""Requests in one statement."""
LOCKED_PAUSE = 0.02
"""Seconds before a record is tried again whose row another transaction has locked."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 3.0
"""Seconds between tries while the database is away."""
REFUSED = (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError)
"""Errors that one record has caused."""


@dataclass(slots=True, eq=False)
class _Request:
    call: Call
    reports: tuple[StepReport, ...] = ()
    wait: WaitOf | None = None
    over: StartOver | None = None
    child: CallOf | None = None
    answer: "asyncio.Future[Any]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def held(self) -> tuple[int, int]:
        return self.call.instance_id, self.call.fence

    def reply(self, value: object) -> None:
        if not self.answer.done():
            self.answer.set_result(value)

    def refuse(self, error: BaseException) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class StepWriter:
    """Loads and writes the records of this process, on a connection of its own that opens with the first step."""

    def __init__(self, line: StageConnection) -> None:
        self._line = line
        self._waiting: list[_Request] = []
        self._writing: asyncio.Task[None] | None = None
        self.rejected = 0
        """Records that were refused because their claim was over."""
        self.on_rejected: Callable[[int], None] = lambda _: None
        self.on_called: Callable[[list[int]], None] = lambda _: None
        """Called with the children that functions of this process have created."""
        self.boundary: Callable[[Call, StepId, str], None] | None = None
        """Called by tests at the boundaries of each step."""

    async def load(self, call: Call) -> dict[StepId, StepRecord]:
        """Return the records of an instance. Instances that ask at once share a statement."""
        return await self._ask(_Request(call))

    async def record(self, call: Call, *reports: StepReport) -> datetime | None:
        """Write records and return the time `until` of the last. Raises `ClaimLost` if the claim is over.

        Raises `RewindAsked`, with the records written, if the instance was cancelled with compensation during this claim.
        """
        return await self._ask(_Request(call, reports))

    async def wait(self, call: Call, id_: StepId, timeout: timedelta | None) -> StepRecord:
        """Record a wait and return it, with its signal if one was sent. Raises `ClaimLost` if the claim is over."""
        return await self._ask(_Request(call, wait=WaitOf(call, id_, timeout)))

    async def call(self, call: Call, id_: StepId, job: str, payload: str | None) -> StepRecord:
        """Call another job and return the call, with its result if the child has ended. Raises `ClaimLost` or `RewindAsked`."""
        return await self._ask(_Request(call, child=CallOf(call, id_, job, payload)))

    async def start_over(self, call: Call, payload: str | None) -> datetime:
        """Give the instance another payload and forget its records; return the time. Raises `ClaimLost` or `RewindAsked`."""
        return await self._ask(_Request(call, over=StartOver(call, payload)))

    async def _ask(self, request: _Request) -> Any:
        self._waiting.append(request)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all(), name="horai steps")
        return await request.answer

    async def _write_all(self) -> None:
        failures = 0
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
                try:
                    left = await self._serve(await self._line.get(), batch)
                    failures = 0
                except Exception as error:  # every error but a refusal: the database is away, and the batch stays
                    self._line.drop()
                    failures += 1
                    log.warning("records of steps could not be written", error=repr(error), failures=failures)
                    self._waiting = [request for request in batch if not request.answer.done()] + self._waiting
                    await asyncio.sleep(min(FIRST_PAUSE * 2**failures, LONGEST_PAUSE))
                    continue
                self._waiting += left
                if left and len(left) == len(self._waiting):
                    await asyncio.sleep(LOCKED_PAUSE)
        finally:
            self._writing = None

    async def _serve(self, connection: Platform, batch: Sequence[_Request]) -> list[_Request]:
        """Serve requests by kind. Return those whose rows are locked."""
        loads = [one for one in batch if not one.reports and not (one.wait or one.over or one.child)]
        if loads:
            await self._load(connection, loads)
        left: list[_Request] = []
        if reports := [request for request in batch if request.reports]:
            left += await self._record(connection, reports)
        if waits := [request for request in batch if request.wait is not None]:
            left += await self._open_waits(connection, waits)
        if overs := [request for request in batch if request.over is not None]:
            left += await self._start_over(connection, overs)
        if called := [request for request in batch if request.child is not None]:
            left += await self._call(connection, called)
        return left

    async def _load(self, connection: Platform, batch: Sequence[_Request]) -> None:
        found: dict[int, dict[StepId, StepRecord]] = {request.call.instance_id: {} for request in batch}
        for instance_id, record in await store.load_steps(connection, found):
            found[instance_id][record.id] = record
        for request in batch:
            request.reply(found[request.call.instance_id])

    async def _record(self, connection: Platform, batch: Sequence[_Request]) -> list[_Request]:
        """Write records in one statement. A record that the database refuses does not fail the others."""
        try:
            accepted, until, rewound = await store.record_steps(
                connection, [ReportOf(request.call, report) for request in batch for report in request.reports]
            )
        except REFUSED as error:
            if len(batch) == 1:
                batch[0].refuse(error)
                return []
            return [one for request in batch for one in await self._record(connection, [request])]
        for request in batch:
            if request.held in rewound:
                request.refuse(RewindAsked("the instance was cancelled with compensation"))
            elif request.held in accepted:
                request.reply(until.get((request.call.instance_id, request.reports[-1].id)))
        return await self._sort_out(connection, [one for one in batch if one.held not in accepted])

    async def _start_over(self, connection: Platform, batch: Sequence[_Request]) -> list[_Request]:
        """Let functions begin again in one statement. A payload that the database refuses does not fail the others."""
        try:
            done = await store.start_over(connection, [request.over for request in batch if request.over is not None])
        except REFUSED as error:
            if len(batch) == 1:
                batch[0].refuse(error)
                return []
            return [one for request in batch for one in await self._start_over(connection, [request])]
        for request in batch:
            if request.held in done.rewound:
                request.refuse(RewindAsked("the instance was cancelled with compensation"))
            elif request.held in done.at:
                request.reply(done.at[request.held])
        known = done.rewound | set(done.at)
        return await self._sort_out(connection, [one for one in batch if one.held not in known])

    async def _call(self, connection: Platform, batch: Sequence[_Request]) -> list[_Request]:
        """Create the children of calls, and read the ends of those that exist, in one transaction that holds their callers."""
        try:
            served = await serve_calls(connection, [request.child for request in batch if request.child is not None])
        except REFUSED as error:
            if len(batch) == 1:
                batch[0].refuse(error)
                return []
            return [one for request in batch for one in await self._call(connection, [request])]
        if served.children:
            self.on_called(served.children)
        for request in batch:
            if request.child is None:
                continue
            asked = request.call.instance_id, request.child.id
            if request.held in served.rewound:
                request.refuse(RewindAsked("the instance was cancelled with compensation"))
            elif asked in served.refused:
                request.refuse(served.refused[asked])
            elif request.held in served.held:
                request.reply(served.found[asked])
        return await self._sort_out(connection, [one for one in batch if one.held not in served.held])

    async def _open_waits(self, connection: Platform, batch: Sequence[_Request]) -> list[_Request]:
        """Record waits, and give them the signals that were sent, in one transaction that holds their instances."""
        async with connection.transaction():
            held = await store.hold_waits(connection, list({one.held: one.call for one in batch}.values()))
            asked = [request.wait for request in batch if request.wait and request.held in held]
            found: dict[tuple[int, StepId], StepRecord] = {}
            if asked:
                ids = [id_ for id_, _ in held]
                await store.open_waits(connection, asked)
                await store.take_signals(connection, ids)
                await store.expire_waits(connection, ids)
                found = {(id_, record.id): record for id_, record in await store.waits_of(connection, ids)}
        for request in batch:
            if request.wait is not None and request.held in held:
                request.reply(found[request.call.instance_id, request.wait.id])
        return await self._sort_out(connection, [one for one in batch if one.held not in held])

    async def _sort_out(self, connection: Platform, left: Sequence[_Request]) -> list[_Request]:
        """Return requests whose rows are locked. Tell the others that their claims are over."""
        if not left:
            return []
        ended = await claims.ended_claims(connection, [_claim(request.call) for request in left])
        over = [request for request in left if request.held in ended]
        for request in over:
            log.warning("a record of a lost claim was refused", job=request.call.job, instance=request.call.instance_id)
            request.refuse(ClaimLost("the claim of the instance is over"))
        self.rejected += len(over)
        self.on_rejected(len(over))
        return [request for request in left if request.held not in ended]

    async def close(self) -> None:
        """End the writing and close the connection. Functions that still wait are told that their claims are over."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
        for request in self._waiting:
            request.refuse(ClaimLost("the worker has stopped"))
        self._waiting.clear()
        await self._line.close()


def _claim(call: Call) -> Claim:
    return Claim(call.instance_id, call.job_id, call.attempt, call.fence, call.node, call.retry_count)
