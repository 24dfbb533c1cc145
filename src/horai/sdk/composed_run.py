"""ComposedRun: the handle of a composition that was started."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from horai.core.errors import AlreadyFinal
from horai.core.states import State
from horai.sdk.job_api import Home
from horai.sdk.outcomes import seconds_of
from horai.sdk.portal import PORTAL
from horai.sdk.runs import Run, RunInfo


class CompositionProgress(NamedTuple):
    """The calls that have ended, all calls, and those that have ended without success. Each item of a group is a call."""

    done: int
    total: int
    failed: int


class ComposedRun:
    """A composition that was started. `run` is its run, with each call as a node.

    `duplicate` is True if nothing was started: its idempotency key was used before, and this is the run of the first call.
    """

    __slots__ = ("_ends", "_home", "_is_list", "duplicate", "run")

    def __init__(self, home: Home, run: Run, ends: Sequence[str], *, is_list: bool, duplicate: bool = False) -> None:
        self.run = run
        self.duplicate = duplicate
        self._home = home
        self._ends = ends
        self._is_list = is_list

    def __repr__(self) -> str:
        return f"<ComposedRun {self.id} {self.run.last.state}>"

    @property
    def id(self) -> str:
        """The id of the run."""
        return self.run.id

    async def state(self) -> str:
        """Return the state now: PENDING, RUNNING, BLOCKED (a call is dead), SUCCESS, CANCELLED or DEAD."""
        return await self.run.state()

    async def progress(self) -> CompositionProgress:
        """Return how many of the calls have ended."""
        return _progress(await self.run.read())

    async def wait(self, timeout: float | str | timedelta | None = None) -> str:
        """Wait until the run stops and return its state. Raises TimeoutError with its state after `timeout`."""
        return await self.run.wait(timeout)

    async def result(self, timeout: float | str | timedelta | None = None) -> Any:
        """Wait for the last call and return its result; for a group, the list of the results.

        Raises InstanceFailed or MapFailed if that call is dead, RunFailed if one before it is, and TimeoutError after `timeout`.
        """
        patience = None if timeout is None else seconds_of(timeout)
        if not self._is_list:
            return await self.run.result(self._ends[0], patience)
        return list(await asyncio.gather(*(self.run.result(name, patience) for name in self._ends)))

    async def cancel(self) -> bool:
        """Cancel the run: calls that wait never start, those that run end. Return False if the run has already ended."""
        if await (await self._home.client()).cancel_instance(int(self.id)):  # the instance that started the run
            return True
        try:
            return (await self.run.cancel()).state == State.CANCELLED.name
        except AlreadyFinal:
            return False


def _progress(run: RunInfo) -> CompositionProgress:
    done = total = failed = 0
    for node in run.nodes.values():
        if node.map is not None and node.map.total is not None:
            done, total, failed = done + node.map.done, total + node.map.total, failed + node.map.failed
            continue
        total += 1
        done += node.finished_at is not None
        failed += node.state in ("DEAD", "CANCELLED")
    return CompositionProgress(done, total, failed)


class SyncComposedRun:
    """A composition that was started, whose methods need no `await`."""

    __slots__ = ("_run",)

    def __init__(self, run: ComposedRun) -> None:
        self._run = run

    def __repr__(self) -> str:
        return repr(self._run)

    @property
    def id(self) -> str:
        """The id of the run."""
        return self._run.id

    @property
    def duplicate(self) -> bool:
        """True if nothing was started: its idempotency key was used before."""
        return self._run.duplicate

    def state(self) -> str:
        """Return the state now."""
        return PORTAL.run(self._run.state())

    def progress(self) -> CompositionProgress:
        """Return how many of the calls have ended."""
        return PORTAL.run(self._run.progress())

    def wait(self, timeout: float | str | timedelta | None = None) -> str:
        """Wait until the run stops and return its state."""
        return PORTAL.run(self._run.wait(timeout))

    def result(self, timeout: float | str | timedelta | None = None) -> Any:
        """Wait for the last call and return its result; for a group, the list of the results."""
        return PORTAL.run(self._run.result(timeout))

    def cancel(self) -> bool:
        """Cancel the run. Return False if it has already ended."""
        return PORTAL.run(self._run.cancel())
