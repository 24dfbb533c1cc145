"""The retry limiter: it holds retries beyond the rate of the governor, and retries of long runs while short ones go first.

All processes share the rate: a token of the database allows one retry. A retry without a token is given back with its
count, to a time at which its turn may come; a token decides again then.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from horai.core.controls import LONG_DEFERRAL, LONG_RUN, ControlBoard
from horai.core.health import EngineHealth
from horai.db import controls
from horai.db.claims import ClaimedRow
from horai.db.clock import DatabaseClock
from horai.db.controls import GovernedRate
from horai.db.jobs import Runnable
from horai.db.pool import Platform

SOONEST, LATEST = timedelta(milliseconds=100), timedelta(minutes=5)
"""A held retry is due again within this time. The governor releases held retries when their limit ends; the latest bounds
the wait of those that it did not release because its node died."""


class RetryLimiter:
    """The check of claimed retries."""

    def __init__(self, board: ControlBoard, health: EngineHealth, clock: DatabaseClock) -> None:
        self._board = board
        self._health = health
        self._clock = clock
        self._next_turn: datetime | None = None
        """The time up to which turns were given to held retries of this process."""

    @property
    def is_needed(self) -> bool:
        """Return whether retries need a decision now."""
        return self._board.current.limits_retries

    async def admit(
        self, connection: Platform, rows: Sequence[ClaimedRow], known: Mapping[int, Runnable]
    ) -> dict[int, timedelta]:
        """Return the retries that may not start now, by instance, and the time until they are due again."""
        retries = [row for row in rows if row.held.retry_count]
        held: dict[int, timedelta] = {}
        if self._board.current.is_short_first:
            long = [row for row in retries if self._is_deferred(row, known[row.held.job_id])]
            held = {row.held.id: LONG_DEFERRAL for row in long}
            retries = [row for row in retries if row.held.id not in held]
        if self._board.current.retry_rate is None or not retries:
            return held
        grant = await controls.grant_governed(connection, GovernedRate.RETRIES, len(retries))
        if grant is None:
            return held
        return held | self._turns(retries[grant.granted :], grant.per_second)

    def _is_deferred(self, row: ClaimedRow, job: Runnable) -> bool:
        """Return whether this is the retry of a long run, which was not deferred before.

        A deferred one is due that much later than its execute time, so that it runs then even if only long ones are left.
        """
        seconds = self._health.totals.usual_seconds(row.held.job_id)
        timeout = None if job.recipe is None else job.recipe.timeout
        declared = 0.0 if timeout is None else timeout.total_seconds()
        is_long = (declared if seconds is None else seconds) > LONG_RUN.total_seconds()
        return is_long and row.due - row.execute_time < LONG_DEFERRAL

    def _turns(self, rows: Sequence[ClaimedRow], per_second: float) -> dict[int, timedelta]:
        """Return the wait of each held retry: one turn after another at the rate, within the bounds."""
        now = self._clock.now()
        turn = max(self._next_turn or now, now)
        waits: dict[int, timedelta] = {}
        for row in rows:
            turn += timedelta(seconds=1 / per_second)
            waits[row.held.id] = min(max(turn - now, SOONEST), LATEST)
        self._next_turn = min(turn, now + LATEST)
        return waits
