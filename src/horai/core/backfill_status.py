"""The states of a backfill."""

from enum import IntEnum


class BackfillStatus(IntEnum):
    """How far a backfill is."""

    RUNNING = 0
    PAUSED = 1
    """No further slots are made; those that were go on."""
    DONE = 2
    """Every slot is made or passed over, and has ended."""
    CANCELLED = 3
    """No further slots; those that waited were cancelled, those that ran are left to finish."""
