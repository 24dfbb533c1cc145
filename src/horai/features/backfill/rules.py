"""A backfill: slots of a job's past that are run, once more or for the first time.

Which slots there are is the schedule's to say, exactly, over clock changes too. Which of them are run is the mode's:

- `missing` runs those that were never made,
- `failed` those whose last run is dead and waits for somebody to care,
- `all` every one.

What is under way is left alone, and so is a slot that will come by itself. A slot that was made before is made again
as its next generation, so that its key is a new one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from math import exp
from typing import Any

from horai.core.backfill_status import BackfillStatus
from horai.core.errors import FieldError, Invalid
from horai.core.queue import Rate, read_limits
from horai.core.timing import Timing
from horai.text import Hint, Refused, Wrong
from horai.text.phrase import Joined, Phrase
from horai.time.schedule import EverySchedule, Schedule

MOST_SLOTS = 1_000_000
CONCURRENCY = 10
GATED_CONCURRENCY = 1
"""How many run at once where nobody says; of a job whose slots may not overlap, one."""
AHEAD = timedelta(seconds=2)
"""With a rate, slots are made so long before they may start: whoever runs them need not wait for the next look."""
SMOOTHING = timedelta(seconds=10)

_MOMENT = timedelta(microseconds=1)


class Mode(IntEnum):
    """Which slots are run."""

    missing = 0
    failed = 1
    all = 2


OPEN = frozenset({BackfillStatus.RUNNING, BackfillStatus.PAUSED})


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """What is asked for: the slots from `since` on and before `until` (None: until now)."""

    since: datetime
    until: datetime | None = None
    mode: Mode = Mode.missing
    rate: Rate | None = None
    max_concurrency: int | None = None

    def concurrency_of(self, timing: Timing) -> int:
        """How many may be under way at once."""
        if self.max_concurrency is not None:
            return self.max_concurrency
        return GATED_CONCURRENCY if timing.is_gated else CONCURRENCY


def checked(document: Mapping[str, Any]) -> BackfillRequest:
    """The wish that a document with instants as datetimes describes; `Invalid` names every wrong field."""
    errors: list[FieldError] = []
    hints: list[Phrase] = []
    limit, rate = read_limits(document, errors, hints)
    if errors:
        raise Invalid.fields(errors, Joined.THEN.all(hints))
    return BackfillRequest(document["from"], document.get("to"), Mode[document.get("mode") or "missing"], rate, limit)


def check_range(wish: BackfillRequest, timing: Timing, now: datetime) -> Schedule:
    """The schedule whose slots are meant; `Invalid` where there is none, or the range makes no sense."""
    if timing.schedule is None:
        raise Invalid(
            Refused.BACKFILL_NO_SCHEDULE(),
            Hint.PUT_INSTEAD(),
        )
    if timing.is_from_finish:
        raise Invalid(
            Refused.BACKFILL_FROM_FINISH(),
            Hint.TRIGGER_OR_ANCHOR(),
        )
    if wish.until is not None and wish.until > now:
        raise Invalid.field("to", Wrong.IN_FUTURE(), Hint.LEAVE_OUT_NOW())
    if wish.since >= (wish.until or now):
        raise Invalid.field("from", Wrong.NOT_BEFORE_TO(), Hint.RANGE_ENDS_BEFORE())
    return timing.schedule


def is_too_many(schedule: Schedule, first: datetime, end: datetime) -> bool:
    """Whether a glance tells that there are more slots than one backfill takes; those of a cron have to be counted."""
    if not isinstance(schedule, EverySchedule) or schedule.excluded:
        return False
    return (end - first) // schedule.interval > MOST_SLOTS


def too_many() -> Invalid:
    """The range has more slots than one backfill takes."""
    return Invalid(Refused.BACKFILL_TOO_MANY(most=MOST_SLOTS), Hint.SPLIT_RANGE())


@dataclass(frozen=True, slots=True)
class KnownSlot:
    """What is known of a slot that was made: its highest generation, and whether one of it is under way.

    `dead`: the last one, where it is dead and nobody has replayed or discarded its letter.
    """

    generation: int
    is_live: bool = False
    dead: int | None = None


@dataclass(frozen=True, slots=True)
class Coming:
    """The slots that the job will have without our help: after `active_from`, those from `since` on, which its schedule has
    not come to, and late ones that are being made, as (first, last).
    """

    active_from: datetime
    since: datetime | None = None
    late: tuple[tuple[datetime, datetime], ...] = ()

    def __contains__(self, slot: datetime) -> bool:
        if slot <= self.active_from:
            return False
        return (self.since is not None and slot >= self.since) or any(a <= slot <= b for a, b in self.late)


def generation_of(mode: Mode, known: KnownSlot | None, *, is_coming: bool) -> int | None:
    """The generation in which a slot is run; None when it is passed over."""
    if known is None:
        return None if is_coming or mode is Mode.failed else 0
    if known.is_live:
        return None
    is_wanted = mode is Mode.all or (mode is Mode.failed and known.dead is not None)
    return known.generation + 1 if is_wanted else None


@dataclass(frozen=True, slots=True)
class SlotChoice:
    """What is made of some slots in a row: those to run, with their generations, how many are passed over, and the first
    that there was no room for (None: all were looked at).
    """

    chosen: tuple[tuple[datetime, int], ...]
    skipped: int
    stopped_at: datetime | None = None


def choose(
    mode: Mode, slots: Sequence[datetime], known: Mapping[datetime, KnownSlot], coming: Coming, room: int
) -> SlotChoice:
    """Looks at slots in their order until `room` of them are to be run and one more would be."""
    chosen: list[tuple[datetime, int]] = []
    skipped = 0
    for slot in slots:
        generation = generation_of(mode, known.get(slot), is_coming=slot in coming)
        if generation is None:
            skipped += 1
        elif len(chosen) == room:
            return SlotChoice(tuple(chosen), skipped, slot)
        else:
            chosen.append((slot, generation))
    return SlotChoice(tuple(chosen), skipped)


def bounds(timing: Timing, since: datetime, until: datetime) -> tuple[datetime, datetime]:
    """The part of a range that the job's `startAt` and `endAt` leave: from the first instant on, before the second."""
    first = since if timing.start_at is None else max(since, timing.start_at)
    end = until if timing.end_at is None else min(until, timing.end_at + _MOMENT)
    return first, end


def starts(rate: Rate | None, next_start: datetime | None, now: datetime, most: int) -> list[datetime]:
    """When up to `most` instances may start: now, or one after the other by the rate, and none later than `AHEAD`."""
    if rate is None:
        return [now] * most
    first, gap = max(next_start or now, now), rate.per / rate.count
    return [at for n in range(most) if (at := first + n * gap) <= now + AHEAD]


def after(rate: Rate | None, started: Sequence[datetime], next_start: datetime | None) -> datetime | None:
    """When the next one may start, behind those that were given a start."""
    return next_start if rate is None or not started else started[-1] + rate.per / rate.count


def smoothed(pace: float | None, ended: int, elapsed: timedelta) -> float | None:
    """How many end in a second, where so many more have ended in a while; the last ten seconds count most."""
    seconds = elapsed.total_seconds()
    if seconds <= 0:
        return pace
    if pace is None:
        return ended / max(seconds, 1.0) if ended else None
    return pace + (ended / seconds - pace) * (1 - exp(-seconds / SMOOTHING.total_seconds()))


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a backfill has come. `slots` are all that its range has, `total` those that were to be run."""

    slots: int
    total: int
    made: int = 0
    skipped: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    pace: float | None = None

    @property
    def running(self) -> int:
        """How many are under way: waiting, running, or waiting for a retry."""
        return self.made - self.succeeded - self.failed - self.cancelled

    @property
    def left(self) -> int:
        """How many have not ended, those included that are still to be made."""
        return max(self.total - self.made, 0) + self.running

    def percent(self, status: BackfillStatus) -> float:
        """How much of it has ended; 100 only when it is done."""
        if status is BackfillStatus.DONE:
            return 100.0
        ended = self.made - self.running
        return min(round(100.0 * ended / max(self.total, self.made, 1), 1), 99.9)

    def eta(self, status: BackfillStatus, now: datetime, rate: Rate | None) -> datetime | None:
        """When it will be done at the pace of late; None where that cannot be told."""
        pace = self.pace or (rate.per_second if rate is not None else None)
        if status is not BackfillStatus.RUNNING or not pace:
            return None
        try:
            return now + timedelta(seconds=self.left / pace)
        except OverflowError:
            return None
