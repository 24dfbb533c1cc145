"""Jitter: the delay of a job's runs after their slots, the same for all slots of the job.

A multiplication by the golden ratio spreads consecutive ids as evenly as any number of them can be, so that jobs
created together for the same minute share it fairly from the first one on, and each keeps its own period exactly.
`horai.spread` does the same arithmetic in SQL, where a bigint can multiply 31 bits.
"""

from datetime import timedelta

LONGEST_JITTER = timedelta(hours=24)
GOLDEN = 1_327_217_885
"""2^31 divided by the golden ratio."""
_RANGE = 2**31


def offset(job_id: int, jitter: timedelta) -> timedelta:
    """Return the delay of a job: from zero to just under `jitter`, in whole milliseconds."""
    width = jitter // timedelta(milliseconds=1)
    return timedelta(milliseconds=(job_id % _RANGE * GOLDEN % _RANGE) * width // _RANGE)
