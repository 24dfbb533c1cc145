"""Measure the delays of starts. The time that a limit, a pause, a control or a held host took is no delay of the scheduler."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter

from horai.core.health import EngineHealth, StartClass
from horai.db.claims import ClaimedRow

_HELD, _JOB, _RETRIES = itemgetter(0), itemgetter(1), itemgetter(5)
"""The claim of a claimed row; the job of a claim, and the number of its retries."""


@dataclass(frozen=True, slots=True)
class StartLimits:
    """When limits last kept due rows from starting: those of lanes, and those of the hosts of jobs."""

    lanes: Mapping[int, datetime] = field(default_factory=dict[int, datetime])
    jobs: Mapping[int, datetime] = field(default_factory=dict[int, datetime])

    def concern(self, rows: Sequence[ClaimedRow]) -> bool:
        """Return whether one of the rows may have waited for a limit."""
        if self.lanes and not self.lanes.keys().isdisjoint({row.lane for row in rows}):
            return True
        return bool(self.jobs) and not self.jobs.keys().isdisjoint({row.held.job_id for row in rows})

    def begin_of(self, row: ClaimedRow, now: datetime) -> datetime:
        """Return from when on nothing but the scheduler delayed the row: at the earliest, its execute time.

        A row whose host was held may have been given back to a later due time.
        """
        begin = max(row.execute_time, self.lanes.get(row.lane, row.execute_time))
        if (until := self.jobs.get(row.held.job_id)) is not None:
            begin = max(begin, row.due, until)
        return min(begin, max(now, row.execute_time))


def observe_starts(health: EngineHealth, rows: Sequence[ClaimedRow], limits: StartLimits, now: datetime) -> None:
    """Record rows that start now."""
    at = time.monotonic()
    if limits.concern(rows):
        begins = [limits.begin_of(row, now) for row in rows]
        health.totals.limit_waits.add_all(
            (begin - row.execute_time).total_seconds()
            for row, begin in zip(rows, begins, strict=True)
            if begin > row.execute_time
        )
        delays = [(now - begin).total_seconds() for begin in begins]
    else:
        delays = [(now - row.execute_time).total_seconds() for row in rows]
    held = [*map(_HELD, rows)]
    health.observe_delays(at, map(_JOB, held), delays)
    retried = len(rows) - [*map(_RETRIES, held)].count(0)
    health.starts.count(at, StartClass.RETRY, retried)
    health.starts.count(at, StartClass.FIRST_TRY, len(rows) - retried)
    health.retry_backlog = max(health.retry_backlog - retried, 0)
