"""The virtual time for tests without an event loop."""

from datetime import datetime, timedelta
from typing import Any, TypeVar

from horai.sdk.declaration import Duration
from horai.sdk.job_api import Verbs
from horai.sdk.sync import PORTAL
from horai.testing.journal import Fired
from horai.testing.mishaps import Moment
from horai.testing.virtual_time import VirtualTime

R = TypeVar("R")


class SyncTime:
    """A `VirtualTime` whose verbs are not awaited; the application's are those of `job.sync`."""

    def __init__(self, time: VirtualTime) -> None:
        self._time = time

    def __repr__(self) -> str:
        return repr(self._time)

    @property
    def now(self) -> datetime:
        """The moment that it is, in UTC."""
        return self._time.now

    @property
    def database_url(self) -> str:
        """Where the application's rows are."""
        return self._time.database_url

    def advance(self, duration: Duration) -> list[Fired]:
        """Lets time go by; the attempts that were made meanwhile."""
        return PORTAL.run(self._time.advance(duration))

    def advance_to(self, moment: datetime | str) -> list[Fired]:
        """The same until a moment, that included."""
        return PORTAL.run(self._time.advance_to(moment))

    def drain(self) -> list[Fired]:
        """Runs what is due now, until nothing is left."""
        return PORTAL.run(self._time.drain())

    def outage(self, duration: Duration) -> list[Fired]:
        """Lets time go by while nothing works, and then work begin again."""
        return PORTAL.run(self._time.outage(duration))

    def run(self, job: Verbs[R], payload: object = None, *, within: Duration = timedelta(days=1)) -> R:
        """Adds an instance for now and lets time go by until it has ended: what it returned."""
        return PORTAL.run(self._time.run(job, payload, within=within))

    def fired(self, job: Verbs[Any] | str | None = None) -> list[Fired]:
        """The attempts of a job, or of all of them."""
        return self._time.fired(job)

    def crash(self, job: Verbs[Any] | str, times: int = 1, when: Moment = "before") -> None:
        """Lets the worker die at the next attempts of a job, before or after its function."""
        self._time.crash(job, times, when)

    def fail(self, job: Verbs[Any] | str, error: Exception, times: int = 1) -> None:
        """Lets the next attempts of a job raise `error`."""
        self._time.fail(job, error, times)
