"""What a test holds in its hand: the time of its application, and what happened in it."""

from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, TypeVar

from horai.sdk.declaration import Duration
from horai.sdk.job_api import Verbs
from horai.sdk.outcomes import seconds_of
from horai.testing.clock import moment_of
from horai.testing.journal import Fired
from horai.testing.mishaps import Crash, Failure, Moment
from horai.testing.workplace import Workplace

R = TypeVar("R")


class VirtualTime:
    """Stands still until it is moved. Then everything happens at its own moment, in order, before the call returns."""

    def __init__(self, workplace: Workplace, database_url: str) -> None:
        self._workplace = workplace
        self._is_moving = False
        self.database_url = database_url
        """Where the application's rows are: for `conn=`, and for looking. There, `now()` is this time too."""

    def __repr__(self) -> str:
        return f"<VirtualTime {self.now.isoformat()}>"

    @property
    def now(self) -> datetime:
        """The moment that it is, in UTC."""
        return self._workplace.clock.now()

    @property
    def is_moving(self) -> bool:
        """Whether something is being run."""
        return self._is_moving

    async def advance(self, duration: Duration) -> list[Fired]:
        """Lets time go by: seconds, text such as "2h", or a timedelta. The attempts that were made meanwhile."""
        return await self.advance_to(self.now + seconds_of(duration))

    async def advance_to(self, moment: datetime | str) -> list[Fired]:
        """The same until a moment, that included: a datetime with an offset, or ISO 8601 text."""
        until = moment_of(moment)
        if until < self.now:
            raise ValueError(f"{until.isoformat()} is over: it is {self.now.isoformat()}")
        with self._moving() as fired:
            while (coming := await self._workplace.drain()) is not None and coming <= until:
                await self._workplace.move_to(coming)
            await self._workplace.move_to(until)
        return fired

    async def drain(self) -> list[Fired]:
        """Runs what is due now, and what that adds for now, until nothing is left. Time stands still."""
        with self._moving() as fired:
            await self._workplace.drain()
        return fired

    async def outage(self, duration: Duration) -> list[Fired]:
        """Lets time go by while nothing works, and then work begin again: misfire policies, late retries."""
        with self._moving() as fired:
            await self._workplace.move_to(self.now + seconds_of(duration))
            await self._workplace.drain()
        return fired

    async def run(self, job: Verbs[R], payload: object = None, *, within: Duration = timedelta(days=1)) -> R:
        """Adds an instance for now and lets time go by until it has ended, retries included: what it returned.

        Raises InstanceFailed when it is dead. What else is due on the way happens, too.
        """
        handle = await job.enqueue(payload)
        limit = self.now + seconds_of(within)
        with self._moving():
            while not await self._workplace.has_ended(int(handle.id)):
                coming = await self._workplace.drain()
                if coming is None or coming > limit or await self._workplace.has_ended(int(handle.id)):
                    break
                await self._workplace.move_to(coming)
        return await handle.result()

    def fired(self, job: Verbs[Any] | str | None = None) -> list[Fired]:
        """The attempts of a job, or of all of them, in the order in which they began."""
        return self._workplace.journal.of(None if job is None else self._name_of(job))

    def crash(self, job: Verbs[Any] | str, times: int = 1, when: Moment = "before") -> None:
        """Lets the worker die at the next `times` attempts of a job, each time.

        `before`: its function has not run. `after`: it has, and nobody knows. Its lease (8 s) runs out, the instance is
        rescued and tried again: let time go by to see it.
        """
        self._workplace.mishaps.plan(self._name_of(job), Crash(when), times)

    def fail(self, job: Verbs[Any] | str, error: Exception, times: int = 1) -> None:
        """Lets the next `times` attempts of a job raise `error` in place of running the function."""
        self._workplace.mishaps.plan(self._name_of(job), Failure(error), times)

    def _name_of(self, job: Verbs[Any] | str) -> str:
        name = job if isinstance(job, str) else job.name
        if name not in self._workplace.job_names:
            raise ValueError(f"{name!r} is no job of this application: {', '.join(sorted(self._workplace.job_names))}")
        return name

    @contextmanager
    def _moving(self) -> Generator[list[Fired]]:
        """One at a time; the list has, at the end, the attempts that were made meanwhile."""
        if self._is_moving:
            raise RuntimeError("The time is being moved already: a function cannot, nor two tasks at once.")
        first, fired = len(self._workplace.journal), list[Fired]()
        self._is_moving = True
        try:
            yield fired
        finally:
            self._is_moving = False
            fired += self._workplace.journal.since(first)
