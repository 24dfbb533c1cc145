"""Admission: it starts claimed rows, or sets aside those that may not run.

Rows of paused jobs are parked, those of deleted jobs are cancelled, and those that this process cannot run or read are
given back. A row is also given back after any error between claim and call.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from horai.core.outcome import Release
from horai.db import claims, jobs
from horai.db.claims import ClaimedRow
from horai.db.jobs import Runnable
from horai.db.pool import Dedicated
from horai.db.wakeups import Wakeups
from horai.engine.dispatch.attempts import Attempts, ClaimedJob
from horai.engine.dispatch.in_flight import InFlight
from horai.engine.dispatch.job_cache import JobCache
from horai.engine.settler import Settlement, Settler

MOVED_PAUSE = timedelta(milliseconds=200)
BROKEN_PAUSE = timedelta(seconds=60)


class Admission:
    """The check between a claim and its calls."""

    def __init__(
        self, attempts: Attempts, settler: Settler, in_flight: InFlight, jobs: JobCache, wakeups: Wakeups
    ) -> None:
        self._attempts = attempts
        self._settler = settler
        self._in_flight = in_flight
        self._wakeups = wakeups
        self._jobs = jobs

    async def start(self, connection: Dedicated, claimed: Sequence[ClaimedRow], now: datetime) -> None:
        """Start, set aside or give back every claimed row."""
        if not claimed:
            return
        left = claimed
        try:
            known = await self._jobs.get(connection, (row.held.job_id for row in claimed))
            refused = {
                job_id for job_id in {row.held.job_id for row in claimed} if not self._may_run(known.get(job_id))
            }
            if refused:
                await self._refuse(connection, [row for row in claimed if row.held.job_id in refused], known)
                left = [row for row in claimed if row.held.job_id not in refused]
            self._attempts.start([_claimed_job(row, known[row.held.job_id]) for row in left], now)
            left = []
        finally:
            for row in left:
                self._settler.submit(Settlement(row.held, Release()))

    def _may_run(self, job: Runnable | None) -> bool:
        return (
            job is not None
            and job.recipe is not None
            and not job.is_paused
            and not job.is_deleted
            and job.recipe.handler in self._attempts.handlers
        )

    async def _refuse(self, connection: Dedicated, rows: Sequence[ClaimedRow], known: Mapping[int, Runnable]) -> None:
        """Park, cancel or give back rows that may not run. Also give back a row that could not be set aside."""
        held = [row.held for row in rows]
        deleted = [h for h in held if h.job_id in known and known[h.job_id].is_deleted]
        paused = [h for h in held if h.job_id in known and known[h.job_id].is_held]
        moved = {h.job_id for h in held if _is_elsewhere(known.get(h.job_id), self._attempts.handlers)}
        done: set[int] = set()
        try:
            if paused:
                done |= await claims.park_if_running(connection, paused)
            if deleted:
                done |= await claims.cancel_if_running(connection, deleted)
            if moved:
                await jobs.ask_relane(connection, sorted(moved))
                self._wakeups.relane_asked()
        finally:
            for h in held:
                if h.id in done and not h.has_slot:
                    self._in_flight.drop([h])
                else:
                    is_broken = h.job_id not in known or known[h.job_id].recipe is None
                    self._settler.submit(Settlement(h, Release(BROKEN_PAUSE if is_broken else MOVED_PAUSE)))


def _claimed_job(row: ClaimedRow, job: Runnable) -> ClaimedJob:
    assert job.recipe is not None  # noqa: S101 — `_may_run` checked it
    return row, job, job.recipe


def _is_elsewhere(job: Runnable | None, handlers: frozenset[str]) -> bool:
    """Return whether the job's handler does not run here: its rows lie in a lane that is no longer theirs."""
    return (
        job is not None
        and job.recipe is not None
        and not (job.is_paused or job.is_deleted)
        and job.recipe.handler not in handlers
    )
