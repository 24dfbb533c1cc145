"""The times of scheduled backups."""

from datetime import datetime, timedelta

RETRY_AFTER = timedelta(minutes=15)
"""The time after a failure, unless the schedule is more frequent."""


def first_at(last_success: datetime | None, every: timedelta, now: datetime) -> datetime:
    """Return when the first backup of a process is due: at once if there is none yet, or if the last one is old."""
    return now if last_success is None else max(last_success + every, now)


def next_at(started_at: datetime, every: timedelta, *, has_failed: bool) -> datetime:
    """Return when the backup after this one is due."""
    return started_at + (min(every, RETRY_AFTER) if has_failed else every)
