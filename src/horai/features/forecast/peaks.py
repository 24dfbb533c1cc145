"""The minutes that stand out, and the jitter that would level them.

A minute is hot if it has at least 60 fires (one a second) and at least three times the average of the hour around it:
midnight, the full hour, but not a busy afternoon. Of hot minutes less than half an hour apart, only the hottest is
reported.

A jitter is suggested for the schedules that fire in that minute, but only for those that have none yet and for which
it is at most half the time between two of their fires. It is the shortest jitter after which neither that minute nor a
minute that the fires have moved into has twice the hour's average; if there is none, the jitter with the lowest peak.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate, pairwise

from horai.features.forecast.crowds import Forecast, Share
from horai.features.forecast.minutes import MINUTE
from horai.time.schedule import EverySchedule, Schedule, next_after

MOST = 10
LEAST_FIRES = 60
TIMES_AROUND = 3
TIMES_LEVELLED = 2
HALF_HOUR = 30
JITTERS = tuple(timedelta(minutes=minutes) for minutes in (2, 5, 10, 15, 30, 60))
"""The jitters to suggest. A shorter one spreads the fires of a minute within that minute and changes no count."""
SCHEDULES_TOLD = 5

_FOREVER = timedelta(days=3_660)
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Concerned:
    """The number of jobs of one schedule that fire in a minute, and their fires."""

    schedule: Schedule
    jobs: int
    fires: int


@dataclass(frozen=True, slots=True)
class HotSpot:
    """A minute that stands out: it has `times` the average per minute of the whole window.

    `concerned` lists the schedules that the suggestion is for, or without one all that fire then, largest first. With
    the suggestion, that minute and those after it would have at most `peak_with_jitter` fires.
    """

    at: datetime
    fires: int
    times: float
    concerned: Sequence[Concerned]
    suggested_jitter: timedelta | None
    peak_with_jitter: int | None


def hot_spots(forecast: Forecast) -> list[HotSpot]:
    """Return the hottest minutes, at most ten, hottest first."""
    fires = forecast.per_minute
    around = _averages_around(fires)
    hot = (i for i, found in enumerate(fires) if found >= LEAST_FIRES and found >= TIMES_AROUND * around[i])
    apart: list[int] = []
    for index in sorted(hot, key=lambda i: (-fires[i], i)):
        if len(apart) < MOST and all(abs(index - other) >= HALF_HOUR for other in apart):
            apart.append(index)
    gaps: dict[int, timedelta] = {}
    return [_hot_spot(forecast, index, around[index], gaps) for index in apart]


def _averages_around(fires: Sequence[int]) -> list[float]:
    """Return per minute the average of the half hours before and after it; at the ends, of the first or last hour."""
    so_far = [0, *accumulate(fires)]
    width = min(2 * HALF_HOUR, len(fires))
    begins = (min(max(i - HALF_HOUR, 0), len(fires) - width) for i in range(len(fires)))
    return [(so_far[begin + width] - so_far[begin]) / width for begin in begins]


@dataclass(frozen=True, slots=True)
class _Part:
    """A crowd's fires in a hot minute; `gap`: the shortest time between two, None if jitter spreads them already."""

    share: Share
    fires: int
    gap: timedelta | None


def _hot_spot(forecast: Forecast, index: int, around: float, gaps: dict[int, timedelta]) -> HotSpot:
    fires = forecast.per_minute
    parts = list(_parts(forecast, index, gaps))
    tried = [(jitter, _levelled(fires, index, jitter, _movable(parts, jitter))) for jitter in JITTERS]
    level = next(
        (found for found in tried if found[1] < TIMES_LEVELLED * around), min(tried, key=lambda found: found[1])
    )
    is_lower = level[1] < fires[index]
    jitter, peak = level if is_lower else (None, None)
    concerned = _movable(parts, jitter) if jitter is not None else parts
    times = round(fires[index] / forecast.average, 1)
    return HotSpot(forecast.window.at(index), fires[index], times, _by_schedule(concerned), jitter, peak)


def _parts(forecast: Forecast, index: int, gaps: dict[int, timedelta]) -> Iterator[_Part]:
    for number, share in enumerate(forecast.shares):
        if (fires := share.at(index)) and share.crowd.jitter <= 1:
            if number not in gaps:
                gaps[number] = _gap(share, forecast)
            yield _Part(share, fires, gaps[number])
        elif fires:
            yield _Part(share, fires, None)


def _gap(share: Share, forecast: Forecast) -> timedelta:
    """Return the shortest time between two fires of the window, or from its last fire to the next one after it."""
    schedule = share.crowd.schedule
    if isinstance(schedule, EverySchedule):
        return schedule.interval
    if max(share.counts) > 1:
        return timedelta(0)
    minutes = [minute for minute, fires in enumerate(share.counts) if fires]
    shortest = min((later - earlier for earlier, later in pairwise(minutes)), default=None)
    last = forecast.window.at(minutes[-1] - share.lead)
    following = next_after(schedule, last + MINUTE - _MOMENT)
    behind = _FOREVER if following is None else following - last
    return behind if shortest is None else min(behind, shortest * MINUTE)


def _movable(parts: Sequence[_Part], jitter: timedelta) -> list[_Part]:
    return [part for part in parts if part.gap is not None and part.gap >= 2 * jitter]


def _levelled(fires: Sequence[int], index: int, jitter: timedelta, movable: Sequence[_Part]) -> int:
    """Return the peak after spreading the movable fires; no schedule of these fires a second time that soon."""
    width = jitter // MINUTE
    moved = sum(part.fires for part in movable)
    behind = max(fires[index + 1 : index + width], default=0)
    return max(fires[index] - moved, behind) + -(-moved // width)


def _by_schedule(parts: Sequence[_Part]) -> list[Concerned]:
    jobs: dict[Schedule, int] = defaultdict(int)
    fires: dict[Schedule, int] = defaultdict(int)
    for part in parts:
        jobs[part.share.crowd.schedule] += part.share.crowd.jobs
        fires[part.share.crowd.schedule] += part.fires
    return [Concerned(schedule, jobs[schedule], fires[schedule]) for schedule in sorted(fires, key=lambda s: -fires[s])]
