"""The effect of changed zone rules on a schedule: slots that are done are not repeated, and no other slot is lost.

A schedule keeps a *mark*: the instant until which all of its slots are done, and what the clock of its zone showed
then, by the rules of then. Under other rules, the next slot is the first one after the mark:

- a schedule that follows real time (`every`, wildcard crons) continues after the instant,
- a fixed time keeps its wall time: it continues after the instant *and* after what the clock showed. Today's 09:00
  that fired before the clock was put back does not fire again; tomorrow's moves along with the wall clock. Nor does
  a slot take the instant of one that fired, because both would have the same `fire_time` and look like one run.

A slot that is now in the past is late like any other: the misfire policy decides about it.
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
    """The progress of a schedule: every slot until the instant `passed` and until the wall time `wall` is done."""

    passed: datetime
    wall: datetime


def mark_before(schedule: Schedule, coming: datetime, now: datetime) -> ZoneMark:
    """Return the mark of a schedule whose next slot is `coming`: just before it, or now if nothing is late."""
    return mark_at(schedule, min(now, coming - _MOMENT))


def mark_at(schedule: Schedule, passed: datetime) -> ZoneMark:
    """Return the mark of a schedule whose slots until `passed` are done; a slot that has been begun counts as done."""
    if not isinstance(schedule, CronSchedule):
        return ZoneMark(passed, wall_of(schedule, passed))
    return ZoneMark(passed, _done_on_the_wall(schedule, passed))


def _done_on_the_wall(schedule: CronSchedule, passed: datetime) -> datetime:
    """Return the wall time until which all slots are done: what the clock shows, unless it shows times twice.

    During the second showing, all times of the first one are done. The policy `last` does nothing during the first.
    """
    wall = wall_of(schedule, passed)
    segment = segment_at(zone(schedule.timezone), (passed - EPOCH) // _SECOND)
    repeats_until = EPOCH + segment.repeats_until * _SECOND
    repeated_from = EPOCH + segment.repeated_from * _SECOND
    if schedule.dst.overlap == "last":
        return wall if passed < repeated_from else wall - (passed - repeated_from) - _MOMENT
    return wall if passed >= repeats_until else wall + (repeats_until - passed) - _MOMENT


def recomputed(schedule: Schedule, coming: datetime, mark: ZoneMark | None) -> datetime | None:
    """Return the next slot, by the current rules, of a schedule that stands at `coming`; None if it never fires again.

    Without a mark, only `coming` is known to be undone: it stays, or is replaced by the slot after it.
    """
    return next_from(schedule, coming) if mark is None else next_undone(schedule, mark)


def next_undone(schedule: Schedule, mark: ZoneMark) -> datetime | None:
    """Return the first slot that is not done, by the current rules; None if there is none."""
    fire = next_after(schedule, mark.passed)
    if not isinstance(schedule, CronSchedule) or schedule.cron.is_wildcard:
        return fire
    while fire is not None and not _is_undone(schedule, fire, mark):
        fire = next_after(schedule, max(fire, _first_showing(schedule, mark.wall)))
    return fire


def _is_undone(schedule: CronSchedule, fire: datetime, mark: ZoneMark) -> bool:
    """Return whether the wall time of `fire` is after the mark, or is shown again and the policy wants both.

    Repeated times count only while the mark is among them: otherwise they would run after a slot that is done.
    """
    wall = wall_of(schedule, fire)
    if wall > mark.wall:
        return True
    segment = segment_at(zone(schedule.timezone), (fire - EPOCH) // _SECOND)
    again_for = EPOCH + segment.repeats_until * _SECOND - fire
    return schedule.dst.overlap == "both" and again_for > timedelta(0) and wall + again_for > mark.wall


def _first_showing(schedule: CronSchedule, wall: datetime) -> datetime:
    """Return an instant before which the clock shows nothing later than `wall`.

    It is the first instant that shows `wall`, if there is one.
    """
    place = zone(schedule.timezone)
    return min(wall.replace(tzinfo=place, fold=fold).astimezone(UTC) for fold in (0, 1))
