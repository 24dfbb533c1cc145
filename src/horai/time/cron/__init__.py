"""Cron expressions: their syntax, and their fire times in a time zone.

| module      | content                                                                              |
|-------------|--------------------------------------------------------------------------------------|
| expression  | `Cron`, the parsed value, and `CronError`, which points at the first wrong character |
| fields      | the numbers one field stands for: lists, ranges, steps, names                        |
| days        | the two day fields, with the days that fall on another date in each month            |
| parser      | text → `Cron`, in the dialect that follows from the number of fields                 |
| calendar    | the next matching time on a wall clock without zones                                 |
| segments    | the stretches of constant UTC offset of a zone, and the clock changes between them   |
| fires       | the next real instant: the calendar mapped to the segments by a `DstPolicy`          |
| mismatch    | the field that does not allow a time, as a sentence                                  |
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
