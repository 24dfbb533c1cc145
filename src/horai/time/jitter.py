"""Jitter: how far behind its slot a job runs, the same for all its slots.

A multiplication by the golden ratio spreads consecutive ids as evenly as any number of them can be, so that jobs made
together for the same minute share it fairly from the first one on, and each keeps its own period exactly. `horai.spread`
does the same arithmetic in SQL, where 31 bits are what a bigint can multiply.
"""

from datetime import timedelta

LONGEST_JITTER = timedelta(hours=24)
GOLDEN = 1_327_217_885
"""2^31 divided by the golden ratio."""
_RANGE = 2**31


def offset(job_id: int, jitter: timedelta) -> timedelta:
    """From nothing to just under `jitter`, in whole milliseconds."""
    width = jitter // timedelta(milliseconds=1)
    return timedelta(milliseconds=(job_id % _RANGE * GOLDEN % _RANGE) * width // _RANGE)
