"""The states of a backfill."""

from enum import IntEnum


class BackfillStatus(IntEnum):
    """The status of a backfill."""

    RUNNING = 0
    PAUSED = 1
    """No further slots are created; those created before continue."""
    DONE = 2
    """Every slot is created or skipped, and has ended."""
    CANCELLED = 3
    """No further slots are created; waiting ones were cancelled, running ones finish."""
