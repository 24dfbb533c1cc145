"""One attempt at a durable function: it skips what its records hold, and records what it finishes."""

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any, NoReturn

from horai.core.calls import Call
from horai.core.errors import Invalid, NotFound
from horai.core.limits import PAYLOAD_LIMIT
from horai.core.outcome import Outcome
from horai.core.retry import RetryPolicy, backoff
from horai.db import caller_transaction
from horai.features.steps.rules import RECORDS_MOST, REWIND, Kind, StepId, StepRecord, StepReport, StepState
from horai.sdk import drivers
from horai.sdk.code_versions import FIRST, ONLY, CodeVersion, OtherVersion
from horai.sdk.outcomes import RetryLater, Skip, Unrecoverable
from horai.sdk.rewinding import Undo, call_anyhow, outcome_of_rewind, undo_step
from horai.sdk.step_tasks import (
    AT_ONCE,
    ONCE,
    PAYLOAD,
    SHORT,
    TURNS,
    Boundary,
    ChildTask,
    StepTask,
    encoded,
    failure,
    result_shape,
    running_step,
    shown,
    told,
)
from horai.sdk.suspension import (
    CallFailed,
    ClaimLost,
    RewindAsked,
    Rewound,
    StepFailed,
    StepRecorder,
    SuspendedRun,
    SuspensionMark,
    Watched,
)
from horai.sdk.unreached import unreached, warn_of
from horai.sdk.version_records import mark_of, next_offer, version_of


class DurableRun(SuspensionMark):
    """The steps of one attempt. All tasks of its function share it."""

    def __init__(
        self,
        recorder: StepRecorder,
        call: Call,
        instance: Watched,
        boundary: Boundary | None = None,
        code: CodeVersion = ONLY,
    ) -> None:
        super().__init__()
        self._code = code
        self._is_ready = False  # the records are loaded, and belong to the version of the function
        self._recorder = recorder
        self._call = call
        self._instance = instance
        self._boundary = boundary
        self._records: dict[StepId, StepRecord] | None = {} if call.fence <= 1 else None
        self._loading = asyncio.Lock()
        self._occurrences: Counter[tuple[Kind, str]] = Counter()
        self._active: set[tuple[Kind, str]] = set()
        self._uncaught: defaultdict[object, list[StepReport]] = defaultdict(list)
        """Failures that were raised but not recorded, by the task that raised them."""
        self._undo: list[Undo] = []
        """The finished steps with compensations, in the order in which the function came past them."""

    async def step(self, name: str, task: StepTask) -> Any:
        """Return the result of a step: the recorded one, or that of the function, which is recorded first."""
        id_ = await self._begin(Kind.STEP, name)
        try:
            record = self._known(id_)
            match None if record is None else record.state:
                case StepState.FINISHED:
                    value = result_shape(task.function).decode(record.result if record else None)
                    if self.is_rewinding and task.compensate is not None:
                        self._undo.append(Undo(id_, task.compensate, value, task.policy))
                    return value
                case StepState.FAILED:
                    raise failure(id_, record)
                case _:
                    await self._end_if_rewinding()
                    if task.compensate is not None:
                        await self._owe_compensation(id_)
                    return await self._tried(id_, record, task)
        finally:
            self._active.discard((id_.kind, id_.name))

    async def sleep(self, name: str, duration: timedelta) -> None:
        """Suspend the function until the recorded end of the sleep."""
        id_ = await self._begin(Kind.SLEEP, name)
        self._active.discard((id_.kind, id_.name))
        if (record := self._known(id_)) is None:
            if duration <= SHORT:
                await asyncio.sleep(0 if self.is_rewinding else duration.total_seconds())
                return
            await self._end_if_rewinding()
            self._require_room()
            self._suspend(await self._record(StepReport(id_, StepState.OPEN, delay=duration)))
        elif not record.is_over:
            await self._end_if_rewinding()
            self._suspend(record.until)

    async def wait(self, name: str, timeout: timedelta | None) -> Any:
        """Return the payload of the next signal, or None after the timeout; suspend the function until then."""
        id_ = await self._begin(Kind.WAIT, name)
        try:
            record = self._known(id_)
            if record is None or record.state is StepState.OPEN:
                await self._end_if_rewinding()
                if record is None:
                    self._require_room()
                record = await self._recorder.wait(self._call, id_, timeout)
            if record.state is StepState.OPEN:
                self._suspend(record.until)
            return PAYLOAD.decode(record.result)
        finally:
            self._active.discard((id_.kind, id_.name))

    async def call(self, name: str, task: ChildTask) -> str | None:
        """Return the result of a call, as JSON text: of the child that was created first. Suspend the function until it has ended."""
        id_ = await self._begin(Kind.CALL, name)
        try:
            record = self._known(id_)
            if record is None or record.state is StepState.OPEN:
                await self._end_if_rewinding()
                if record is None:
                    self._require_room()
                self._reach(id_, "before")
                record = await self._asked_child(id_, task)
                if record.state is StepState.FAILED:
                    # Recorded only if the function catches it: the next attempt looks for a replay of the child first.
                    final = StepReport(id_, record.state, error_type=record.error_type, error_msg=record.error_msg)
                    self._uncaught[asyncio.current_task()].append(final)
            self._reach(id_, "inside" if record.state is StepState.OPEN else "after")
            match record.state:
                case StepState.OPEN:
                    self._suspend(None)
                case StepState.FINISHED:
                    return record.result
                case StepState.FAILED:
                    raise CallFailed(shown(id_), str(record.child), record.error_type or "", record.error_msg or "")
        finally:
            self._active.discard((id_.kind, id_.name))

    async def _asked_child(self, id_: StepId, task: ChildTask) -> StepRecord:
        try:
            try:
                return await self._recorder.call(self._call, id_, task.job, task.payload)
            except NotFound:
                await task.declare()
                return await self._recorder.call(self._call, id_, task.job, task.payload)
        except RewindAsked:
            self._suspend(None)

    async def start_over(self, job: str, payload: str | None) -> NoReturn:
        """End the attempt. The function begins again with another payload, and without records."""
        if job != self._call.job:
            raise Invalid(f"{job!r} cannot continue an instance of {self._call.job!r}.", "Call it in its own function.")
        if self._instance.is_cancelled:
            raise ClaimLost
        if self._active:
            name = next(iter(self._active))[1]
            raise Invalid(f"The step {name!r} still runs.", "Wait for all steps first.")
        if payload is not None and len(payload.encode()) > PAYLOAD_LIMIT:
            raise Unrecoverable(
                f"The arguments are larger than {PAYLOAD_LIMIT} bytes, and the function cannot continue."
            )
        await self._loaded()
        await self._end_if_rewinding()
        try:
            until = await self._recorder.start_over(self._call, payload)
        except RewindAsked:
            until = None
        self._suspend(until)

    async def gather(self, branches: tuple[Coroutine[Any, Any, Any], ...]) -> list[Any]:
        """Run branches side by side and wait for all. Raises the first error; suspends if no branch has failed."""
        tasks = [asyncio.ensure_future(branch) for branch in branches]
        try:
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        except BaseException:
            for task in tasks:
                task.cancel()
            raise
        for task in tasks:  # an error that the caller catches is recorded with the caller's next step
            self._uncaught[asyncio.current_task()] += self._uncaught.pop(task, [])
        errors = [error for error in ended if isinstance(error, BaseException)]
        paused = [error for error in errors if isinstance(error, SuspendedRun)]
        for error in errors:
            if not isinstance(error, SuspendedRun):
                raise error
        if paused:
            times = [error.until for error in paused if error.until is not None]
            self._suspend(min(times, default=None))
        return ended

    async def _begin(self, kind: Kind, name: str) -> StepId:
        """Return the identity of the next step of this name. Raises `ClaimLost` if the claim is over."""
        if self._instance.is_cancelled:
            raise ClaimLost
        if (kind, name) in self._active:
            raise Invalid.field("name", f"two steps {name!r} run at once", AT_ONCE[kind])
        self._active.add((kind, name))
        self._occurrences[kind, name] += 1
        id_ = StepId(kind, name, self._occurrences[kind, name])
        try:
            await self._loaded()
            if caught := self._uncaught.pop(asyncio.current_task(), None):
                await self._record(*caught)
        except BaseException:
            self._active.discard((kind, name))
            raise
        return id_

    async def _loaded(self) -> None:
        """Load the records of earlier attempts, once."""
        if not self._is_ready:
            async with self._loading:
                if self._records is None:
                    self._records = await self._recorder.load(self._call)
                    self.is_rewinding = REWIND in self._records
                if not self._is_ready:
                    await self._settle_version(self._records)
                    self._is_ready = True

    async def _settle_version(self, records: dict[StepId, StepRecord]) -> None:
        """Go on if the instance belongs to this version of the function, or to none; otherwise leave it to the version it began in."""
        began, code = version_of(records), self._code
        if began is None or began in code.continues:
            if began is not None or code.number != FIRST:
                await self._record(StepReport(mark_of(code.number), StepState.FINISHED))
        elif began in code.others:
            self.is_suspended = True  # a function that catches the error and returns has not ended the instance
            raise OtherVersion(began)
        elif began != code.number:
            self._suspend(await self._record(next_offer(began, records)))

    def restarted(self, code: CodeVersion) -> "DurableRun":
        """Return a run from the top with the same records, in another version of the function."""
        again = DurableRun(self._recorder, self._call, self._instance, self._boundary, code)
        again._records, again.is_rewinding = self._records, self.is_rewinding
        return again

    def _known(self, id_: StepId) -> StepRecord | None:
        return None if self._records is None else self._records.get(id_)

    def _require_room(self) -> None:
        if sum(self._occurrences.values()) > RECORDS_MOST:
            raise Unrecoverable(
                f"The instance has more than {RECORDS_MOST} steps. Do several things in one step, or enqueue another"
                " instance for the rest."
            )

    async def _record(self, *reports: StepReport) -> datetime | None:
        """Write records. Suspends the function if its instance was cancelled with compensation."""
        try:
            return await self._recorder.record(self._call, *reports)
        except RewindAsked:
            self._suspend(None)

    async def _owe_compensation(self, id_: StepId) -> None:
        """Record that the step has a compensation, before the step runs: a cancel then waits for the step."""
        owed = StepId(Kind.COMPENSATION, id_.name, id_.n)
        if self._known(owed) is None:
            self._occurrences[owed.kind, owed.name] += 1
            self._require_room()
            await self._record(StepReport(owed, StepState.OPEN))

    async def _end_if_rewinding(self) -> None:
        """End the function where its finished steps end. Its other branches come past theirs first."""
        if self.is_rewinding:
            for _ in range(TURNS):
                await asyncio.sleep(0)
            raise Rewound

    def warn_of_unreached(self) -> None:
        """Warn of the finished records that the function no longer has, because its code has changed."""
        if names := unreached(self._records or {}, self._occurrences):
            warn_of(names, self._call, self._instance)

    async def rewind(self) -> Outcome:
        """Compensate the finished steps, the last first. Return the outcome of the attempt.

        A compensation that fails for good does not keep the others from running.
        """
        records = self._records or {}
        failed = [said for undo in reversed(self._undo) if (said := await self._undone(undo))]
        reached = {undo.id for undo in self._undo}
        failed += [
            f"{shown(id_)} (the function no longer reaches this step)"
            for id_, record in records.items()
            if id_.kind is Kind.COMPENSATION and record.state is StepState.OPEN and id_ not in reached
            if (step := records.get(StepId(Kind.STEP, id_.name, id_.n))) and step.state is StepState.FINISHED
        ]
        return outcome_of_rewind(records[REWIND], failed)

    async def _undone(self, undo: Undo) -> str | None:
        """Compensate one step. Return the sentence about its failure, None if it is compensated.

        A step that was recorded by a function without this compensation has none.
        """
        if (record := self._known(undo.id)) is None or record.state is StepState.FINISHED:
            return None
        if record.state is StepState.FAILED:
            return f"{shown(undo.id)} ({record.error_type}: {record.error_msg})"
        if self._instance.is_cancelled:
            raise ClaimLost
        try:
            await self._tried(undo.id, record, StepTask(undo_step, (undo, self._call.timeout), undo.policy))
        except StepFailed as error:
            return f"{shown(undo.id)} ({error.error_type}: {error.message})"
        except Unrecoverable as error:
            code, message = told(error)
            report = StepReport(undo.id, StepState.FAILED, record.tries + 1, error_type=code, error_msg=message)
            await self._record(report)
            return f"{shown(undo.id)} ({code}: {message})"
        return None

    async def _tried(self, id_: StepId, record: StepRecord | None, task: StepTask) -> Any:
        """Run the function until it returns or its retries are used up."""
        if record is None:
            self._require_room()
        elif record.until is not None and not record.is_over:
            self._suspend(record.until)
        tries = 0 if record is None else record.tries
        while True:
            self._reach(id_, "before")
            began, tries = time.monotonic(), tries + 1
            try:
                value = await self._called(id_, task)
            except (RetryLater, Skip, Unrecoverable):
                raise
            except Exception as error:
                took = timedelta(seconds=time.monotonic() - began)
                await self._failed(id_, error, tries, task.policy, took)
                continue
            text = encoded(id_, value)
            self._reach(id_, "inside")
            if task.conn is not None:
                await self._record_within(task.conn, id_, text)
            else:
                took = timedelta(seconds=time.monotonic() - began)
                await self._record(StepReport(id_, StepState.FINISHED, tries, result=text, took=took))
            self._reach(id_, "after")
            return result_shape(task.function).decode(text)

    async def _called(self, id_: StepId, task: StepTask) -> Any:
        suffix = ":compensation" if id_.kind is Kind.COMPENSATION else ""
        token = running_step.set(f"{self._call.instance_id}:{id_.name}:{id_.n}{suffix}")
        try:
            return await call_anyhow(task.function, *task.args)
        finally:
            running_step.reset(token)

    async def _failed(self, id_: StepId, error: Exception, tries: int, policy: RetryPolicy, took: timedelta) -> None:
        """Return if the step is to be tried again now. Suspends the function, or raises `StepFailed`."""
        code, message = told(error)
        final = StepReport(id_, StepState.FAILED, tries, error_type=code, error_msg=message, took=took)
        if policy.is_spent(tries):
            if policy is ONCE:
                # Recorded only if the function catches it: otherwise the next attempt tries the step again.
                self._uncaught[asyncio.current_task()].append(final)
            else:
                await self._record(final)
            raise StepFailed(shown(id_), code, message) from error
        delay = backoff(policy, tries, random.uniform)
        again = StepReport(id_, StepState.OPEN, tries, delay, error_type=code, error_msg=message, took=took)
        until = await self._record(again)
        if delay > SHORT:
            self._suspend(until)
        await asyncio.sleep(delay.total_seconds())

    async def _record_within(self, conn: Any, id_: StepId, text: str) -> None:
        """Record a step in the caller's transaction, which commits it together with the step's own writes."""
        call = self._call
        guard = (call.instance_id, call.attempt, call.fence, call.node)
        if not await drivers.fetch(conn, caller_transaction.record_step(guard, id_.name, id_.n, text)):
            raise ClaimLost

    def _suspend(self, until: datetime | None) -> NoReturn:
        self.is_suspended = True
        raise SuspendedRun(until)

    def _reach(self, id_: StepId, moment: str) -> None:
        if self._boundary is not None:
            self._boundary(self._call, id_, moment)
