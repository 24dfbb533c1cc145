"""The virtual time for tests without an event loop."""

from datetime import datetime, timedelta
from typing import Any, TypeVar

from horai.sdk.declaration import Duration
from horai.sdk.job_api import Verbs
from horai.sdk.portal import PORTAL
from horai.testing.journal import Fired
from horai.testing.mishaps import Moment
from horai.testing.virtual_time import VirtualTime

R = TypeVar("R")


class SyncTime:
    """A `VirtualTime` whose methods are not awaited. Use `job.sync` for the application's jobs."""

    def __init__(self, time: VirtualTime) -> None:
        self._time = time

    def __repr__(self) -> str:
        return repr(self._time)

    @property
    def now(self) -> datetime:
        """Return the virtual time in UTC."""
        return self._time.now

    @property
    def database_url(self) -> str:
        """Return the URL of the application's database."""
        return self._time.database_url

    def advance(self, duration: Duration) -> list[Fired]:
        """Advance the time by a duration. Return the attempts made meanwhile."""
        return PORTAL.run(self._time.advance(duration))

    def advance_to(self, moment: datetime | str) -> list[Fired]:
        """Advance the time to a moment, inclusive. Return the attempts made meanwhile."""
        return PORTAL.run(self._time.advance_to(moment))

    def drain(self) -> list[Fired]:
        """Run all due instances until none is left."""
        return PORTAL.run(self._time.drain())

    def outage(self, duration: Duration) -> list[Fired]:
        """Advance the time while no node runs, then start again."""
        return PORTAL.run(self._time.outage(duration))

    def run(self, job: Verbs[..., R], payload: object = None, *, within: Duration = timedelta(days=1)) -> R:
        """Enqueue an instance for now, advance the time until it has ended, and return its result."""
        return PORTAL.run(self._time.run(job, payload, within=within))

    def fired(self, job: Verbs[..., Any] | str | None = None) -> list[Fired]:
        """Return the attempts of a job, or of all jobs."""
        return self._time.fired(job)

    def crash(self, job: Verbs[..., Any] | str, times: int = 1, when: Moment = "before") -> None:
        """Make the worker die at the next attempts of a job, before or after its function."""
        self._time.crash(job, times, when)

    def fail(self, job: Verbs[..., Any] | str, error: Exception, times: int = 1) -> None:
        """Make the next attempts of a job raise `error`."""
        self._time.fail(job, error, times)
