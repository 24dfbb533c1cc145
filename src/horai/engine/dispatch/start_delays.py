"""Measure the delays of starts. The time that a limit, a pause or a control took is no delay of the scheduler."""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime

from horai.core.health import EngineHealth, StartClass
from horai.db.claims import ClaimedRow


def observe_starts(
    health: EngineHealth, rows: Sequence[ClaimedRow], limited_at: Mapping[int, datetime], now: datetime
) -> None:
    """Record rows that start now. `limited_at`: when a limit last kept due rows of a lane from starting."""
    at = time.monotonic()
    if limited_at and not limited_at.keys().isdisjoint({row.lane for row in rows}):
        begins = [max(row.execute_time, limited_at.get(row.lane, row.execute_time)) for row in rows]
        health.totals.limit_waits.add_all(
            (begin - row.execute_time).total_seconds()
            for row, begin in zip(rows, begins, strict=True)
            if begin > row.execute_time
        )
        delays = [(now - begin).total_seconds() for begin in begins]
    else:
        delays = [(now - row.execute_time).total_seconds() for row in rows]
    held = [row[0] for row in rows]
    health.observe_delays(at, [each.job_id for each in held], delays)
    retried = len([each for each in held if each.retry_count])
    health.starts.count(at, StartClass.RETRY, retried)
    health.starts.count(at, StartClass.FIRST_TRY, len(rows) - retried)
    health.retry_backlog = max(health.retry_backlog - retried, 0)
