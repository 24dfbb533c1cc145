"""The virtual time of an application under test, and the attempts made in it."""

from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, TypeVar

from horai.sdk.app import Horai
from horai.sdk.declaration import Duration
from horai.sdk.job_api import Verbs
from horai.sdk.outcomes import seconds_of
from horai.testing.clock import moment_of
from horai.testing.journal import Fired
from horai.testing.mishaps import Crash, Failure, Moment
from horai.testing.workplace import Workplace

R = TypeVar("R")


class VirtualTime:
    """A time that stands still until the test moves it. Then all due work runs at its own moment, in order."""

    def __init__(self, workplace: Workplace, database_url: str) -> None:
        self.workplace = self._workplace = workplace
        self._is_moving = False
        self.database_url = database_url
        """The URL of the application's database, for `conn=` and for queries. There, `now()` is the virtual time."""

    def __repr__(self) -> str:
        return f"<VirtualTime {self.now.isoformat()}>"

    @property
    def now(self) -> datetime:
        """Return the virtual time in UTC."""
        return self._workplace.clock.now()

    @property
    def is_moving(self) -> bool:
        """Return whether the harness is running instances now."""
        return self._is_moving

    def deploy(self, app: Horai) -> None:
        """Give the worker other code, as a deploy does: the functions of `app` in place of those with the same names."""
        self._workplace.deploy(app)

    async def advance(self, duration: Duration) -> list[Fired]:
        """Advance the time by seconds, text such as "2h", or a timedelta. Return the attempts made meanwhile."""
        return await self.advance_to(self.now + seconds_of(duration))

    async def advance_to(self, moment: datetime | str) -> list[Fired]:
        """Advance to a moment, inclusive: a datetime with an offset, or ISO 8601 text. Return the attempts made."""
        until = moment_of(moment)
        if until < self.now:
            raise ValueError(f"{until.isoformat()} is in the past: the time is {self.now.isoformat()}")
        with self._moving() as fired:
            while (coming := await self._workplace.drain()) is not None and coming <= until:
                await self._workplace.move_to(coming)
            await self._workplace.move_to(until)
        return fired

    async def drain(self) -> list[Fired]:
        """Run all due instances, and those that they add for now, until none is left. The time stands still."""
        with self._moving() as fired:
            await self._workplace.drain()
        return fired

    async def outage(self, duration: Duration) -> list[Fired]:
        """Advance the time while no node runs, then start again: for tests of misfire policies and late retries."""
        with self._moving() as fired:
            await self._workplace.move_to(self.now + seconds_of(duration))
            await self._workplace.drain()
        return fired

    async def run(self, job: Verbs[..., R], payload: object = None, *, within: Duration = timedelta(days=1)) -> R:
        """Enqueue an instance for now, advance the time until it has ended, retries included, and return its result.

        `job.arguments(…)` makes the payload of a function with several parameters. Raises `InstanceFailed` if it is
        dead. Other instances that become due meanwhile also run.
        """
        handle = await job.add(payload, {})
        limit = self.now + seconds_of(within)
        with self._moving():
            while not await self._workplace.has_ended(int(handle.id)):
                coming = await self._workplace.drain()
                if coming is None or coming > limit or await self._workplace.has_ended(int(handle.id)):
                    break
                await self._workplace.move_to(coming)
        return await handle.result()

    def fired(self, job: Verbs[..., Any] | str | None = None) -> list[Fired]:
        """Return the attempts of a job, or of all jobs, in the order in which they began."""
        return self._workplace.journal.of(None if job is None else self._name_of(job))

    def crash(self, job: Verbs[..., Any] | str, times: int = 1, when: Moment = "before") -> None:
        """Make the worker die at each of the next `times` attempts of a job.

        `before`: its function has not run. `after`: it has run, but the outcome is not stored. After the lease (8 s)
        has expired, the instance is rescued and tried again: advance the time to see it.
        """
        self._workplace.mishaps.plan(self._name_of(job), Crash(when), times)

    def fail(self, job: Verbs[..., Any] | str, error: Exception, times: int = 1) -> None:
        """Make the next `times` attempts of a job raise `error` instead of running the function."""
        self._workplace.mishaps.plan(self._name_of(job), Failure(error), times)

    def _name_of(self, job: Verbs[..., Any] | str) -> str:
        name = job if isinstance(job, str) else job.name
        if name not in self._workplace.job_names:
            raise ValueError(
                f"{name!r} is not a job of this application: {', '.join(sorted(self._workplace.job_names))}"
            )
        return name

    @contextmanager
    def _moving(self) -> Generator[list[Fired]]:
        """Allow one move at a time. The yielded list has, at the end, the attempts made meanwhile."""
        if self._is_moving:
            raise RuntimeError("The time is being moved already: functions cannot move it, nor can two tasks at once.")
        first, fired = len(self._workplace.journal), list[Fired]()
        self._is_moving = True
        try:
            yield fired
        finally:
            self._is_moving = False
            fired += self._workplace.journal.since(first)
