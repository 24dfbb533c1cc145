"""Jitter: how far behind its slot a job runs, the same for all its slots.

A multiplication by the golden ratio spreads consecutive ids as evenly as any number of them can be, so that jobs made
together for the same minute share it fairly from the first one on, and each keeps its own period exactly. The trigger's
SQL does the same arithmetic (`make_slots`).
"""

from datetime import timedelta

LONGEST_JITTER = timedelta(hours=24)
GOLDEN = 2_654_435_769
"""2^32 divided by the golden ratio."""


def offset(job_id: int, jitter: timedelta) -> timedelta:
    """From nothing to just under `jitter`, in whole milliseconds."""
    width = jitter // timedelta(milliseconds=1)
    return timedelta(milliseconds=(job_id * GOLDEN % 2**32) * width // 2**32)
