"""Cron expressions: what they say, and when they fire in a time zone.

| module      | promise                                                                             |
|-------------|-------------------------------------------------------------------------------------|
| expression  | `Cron`, the parsed value, and `CronError`, which points at what is wrong             |
| fields      | the numbers one field stands for: lists, ranges, steps, names                        |
| days        | the two day fields, with the days that fall on another date in each month             |
| parser      | text → `Cron`, in the dialect that its number of fields tells                        |
| calendar    | the next matching time on a wall clock that knows no zones                           |
| segments    | the stretches of constant UTC offset of a zone, and what the clock does between them |
| fires       | the next real instant: the calendar laid over the segments by a `DstPolicy`          |
| mismatch    | which field does not allow a time, in a sentence                                     |
| phrases     | the sentences                                                                        |
"""

from horai.time.cron.expression import NO_NEXT_FIRE, Cron, CronError, Dialect
from horai.time.cron.fires import DstPolicy, Gap, Overlap, next_fire
from horai.time.cron.mismatch import why_not
from horai.time.cron.parser import parse

__all__ = [
    "NO_NEXT_FIRE",
    "Cron",
    "CronError",
    "Dialect",
    "DstPolicy",
    "Gap",
    "Overlap",
    "next_fire",
    "parse",
    "why_not",
]
