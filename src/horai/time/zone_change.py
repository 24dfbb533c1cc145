"""What a change of the zone rules means for a schedule: nothing that was done comes again, nothing else is left out.

A schedule keeps a *mark*: the instant until which all of its slots are done, and what the clock of its zone showed
then, by the rules of then. Under other rules the coming slot is the first one behind the mark:

- what follows real time (`every`, wildcard crons) goes on behind the instant,
- a fixed time stays where it is on the wall: it goes on behind the instant *and* behind what the clock showed. Today's
  09:00 that fired before the clock was put back does not fire again; tomorrow's moves along with the wall. Nor does a
  slot take the instant of one that fired, as both would be the same run to whoever looks at its `fire_time`.

A slot that now lies in the past is late like any other, and the misfire policy's to decide.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from horai.time.cron.segments import EPOCH, segment_at
from horai.time.schedule import CronSchedule, Schedule, next_after, next_from, wall_of
from horai.time.zones import zone

_MOMENT = timedelta(microseconds=1)
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class ZoneMark:
    """How far a schedule has come: every slot until the instant `passed` is done, and on the wall every one until `wall`."""

    passed: datetime
    wall: datetime


def mark_before(schedule: Schedule, coming: datetime, now: datetime) -> ZoneMark:
    """The mark of a schedule whose next slot is `coming`: all before it is done, or until now where nothing is late."""
    return mark_at(schedule, min(now, coming - _MOMENT))


def mark_at(schedule: Schedule, passed: datetime) -> ZoneMark:
    """The mark of a schedule all of whose slots until `passed` are done; that of a slot which has been begun is its own."""
    if not isinstance(schedule, CronSchedule):
        return ZoneMark(passed, wall_of(schedule, passed))
    return ZoneMark(passed, _done_on_the_wall(schedule, passed))


def _done_on_the_wall(schedule: CronSchedule, passed: datetime) -> datetime:
    """The wall time until which all slots are done: what the clock shows, but while it shows times twice.

    When they come for the second time, all that it has shown for the first time is done. The policy `last` does nothing
    the first time.
    """
    wall = wall_of(schedule, passed)
    segment = segment_at(zone(schedule.timezone), (passed - EPOCH) // _SECOND)
    repeats_until = EPOCH + segment.repeats_until * _SECOND
    repeated_from = EPOCH + segment.repeated_from * _SECOND
    if schedule.dst.overlap == "last":
        return wall if passed < repeated_from else wall - (passed - repeated_from) - _MOMENT
    return wall if passed >= repeats_until else wall + (repeats_until - passed) - _MOMENT


def recomputed(schedule: Schedule, coming: datetime, mark: ZoneMark | None) -> datetime | None:
    """Where a schedule that stands at `coming` stands by the rules of now; None when it never fires again.

    Without a mark, nothing is known but that `coming` is still to be done: it stays, or gives way to the slot behind it.
    """
    return next_from(schedule, coming) if mark is None else next_undone(schedule, mark)


def next_undone(schedule: Schedule, mark: ZoneMark) -> datetime | None:
    """The first slot that is not done, by the rules of now."""
    fire = next_after(schedule, mark.passed)
    if not isinstance(schedule, CronSchedule) or schedule.cron.is_wildcard:
        return fire
    while fire is not None and not _is_undone(schedule, fire, mark):
        fire = next_after(schedule, max(fire, _first_showing(schedule, mark.wall)))
    return fire


def _is_undone(schedule: CronSchedule, fire: datetime, mark: ZoneMark) -> bool:
    """Whether the clock shows a time behind the mark, or shows it again where the policy wants both.

    Times that come again count only while the mark is among them: behind them would come what was done.
    """
    wall = wall_of(schedule, fire)
    if wall > mark.wall:
        return True
    segment = segment_at(zone(schedule.timezone), (fire - EPOCH) // _SECOND)
    again_for = EPOCH + segment.repeats_until * _SECOND - fire
    return schedule.dst.overlap == "both" and again_for > timedelta(0) and wall + again_for > mark.wall


def _first_showing(schedule: CronSchedule, wall: datetime) -> datetime:
    """An instant before which the clock shows nothing later than `wall`, and the first that shows it where one does."""
    place = zone(schedule.timezone)
    return min(wall.replace(tzinfo=place, fold=fold).astimezone(UTC) for fold in (0, 1))
