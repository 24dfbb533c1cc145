"""Rules of backfills: run slots of a job's past, again or for the first time.

The schedule defines the slots of the range exactly, across clock changes too. The mode selects the slots to run:

- `missing` runs slots that were never created,
- `failed` runs slots whose last run is dead and was neither replayed nor discarded,
- `all` runs every slot.

A backfill skips slots with a live instance, and slots that the job's own schedule will create. A slot that was created
before is created again as its next generation, so that it gets a new key.
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
from horai.time.schedule import EPOCH, EverySchedule, Schedule

MOST_SLOTS = 1_000_000
CONCURRENCY = 10
GATED_CONCURRENCY = 1
"""The default number of instances at once; 1 for a job whose slots may not overlap."""
AHEAD = timedelta(seconds=2)
"""With a rate, slots are created this long before they may start, so that dispatch need not wait for the next step."""
SMOOTHING = timedelta(seconds=10)

_MOMENT = timedelta(microseconds=1)


class Mode(IntEnum):
    """The slots that a backfill runs."""

    missing = 0
    failed = 1
    all = 2


OPEN = frozenset({BackfillStatus.RUNNING, BackfillStatus.PAUSED})


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """A request for a backfill: the slots from `since` (included) to `until` (excluded; None: now)."""

    since: datetime
    until: datetime | None = None
    mode: Mode = Mode.missing
    rate: Rate | None = None
    max_concurrency: int | None = None

    def concurrency_of(self, timing: Timing) -> int:
        """Return the maximum number of live instances at once."""
        if self.max_concurrency is not None:
            return self.max_concurrency
        return GATED_CONCURRENCY if timing.is_gated else CONCURRENCY


def checked(document: Mapping[str, Any]) -> BackfillRequest:
    """Return the request of a document with instants as datetimes. Raise `Invalid` with every wrong field."""
    errors: list[FieldError] = []
    hints: list[Phrase] = []
    limit, rate = read_limits(document, errors, hints)
    if errors:
        raise Invalid.fields(errors, Joined.THEN.all(hints))
    return BackfillRequest(document["from"], document.get("to"), Mode[document.get("mode") or "missing"], rate, limit)


def check_range(wish: BackfillRequest, timing: Timing, now: datetime) -> Schedule:
    """Return the schedule whose slots are meant. Raise `Invalid` if there is none or the range is not valid."""
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
    """Return whether an interval surely has more slots than a backfill accepts; slots of a cron must be counted."""
    if not isinstance(schedule, EverySchedule) or schedule.excluded:
        return False
    return (end - first) // schedule.interval > MOST_SLOTS


def too_many() -> Invalid:
    """Build the error for a range with more slots than one backfill accepts."""
    return Invalid(Refused.BACKFILL_TOO_MANY(most=MOST_SLOTS), Hint.SPLIT_RANGE())


@dataclass(frozen=True, slots=True)
class KnownSlot:
    """A slot that was created: its highest generation, and whether it has a live instance.

    `dead`: its last instance, if that is dead and its letter was neither replayed nor discarded.
    """

    generation: int
    is_live: bool = False
    dead: int | None = None


@dataclass(frozen=True, slots=True)
class Coming:
    """The upcoming slots that the job gets without a backfill.

    After `active_from`: slots from `since` on, which its schedule has not reached yet, and late slots that are being
    created, as (first, last). `forgotten`: from when until when the job may have had slots whose history was dropped.
    """

    active_from: datetime
    since: datetime | None = None
    late: tuple[tuple[datetime, datetime], ...] = ()
    forgotten: tuple[datetime, datetime] | None = None

    def __contains__(self, slot: datetime) -> bool:
        if slot <= self.active_from:
            return False
        return (self.since is not None and slot >= self.since) or any(a <= slot <= b for a, b in self.late)

    def dropped(self, slot: datetime) -> KnownSlot | None:
        """Return what is known of a slot whose history was dropped; None if there is no trace because it never ran.

        It may have run in any number of generations: the number of a day is above all of them, and grows.
        """
        if self.forgotten is None or not self.forgotten[0] <= slot < self.forgotten[1]:
            return None
        return KnownSlot((self.forgotten[1] - EPOCH).days)


def generation_of(mode: Mode, known: KnownSlot | None, *, is_coming: bool) -> int | None:
    """Return the generation in which a slot is run; None if it is skipped."""
    if known is None:
        return None if is_coming or mode is Mode.failed else 0
    if known.is_live:
        return None
    is_wanted = mode is Mode.all or (mode is Mode.failed and known.dead is not None)
    return known.generation + 1 if is_wanted else None


def check_history(mode: Mode, coming: Coming, first: datetime, end: datetime) -> None:
    """Raise `Invalid` if the range has slots whose history was dropped and the mode depends on whether they ran."""
    forgotten = coming.forgotten
    if mode is not Mode.all and forgotten is not None and first < forgotten[1] and end > forgotten[0]:
        raise Invalid(
            Refused.BACKFILL_FORGOTTEN(at=forgotten[1].isoformat(), mode=mode.name), Hint.BEGIN_LATER_OR_ALL()
        )


@dataclass(frozen=True, slots=True)
class SlotChoice:
    """The decision on consecutive slots: those to run, with their generations, and the number skipped.

    `stopped_at` is the first slot without room (None: all were checked).
    """

    chosen: tuple[tuple[datetime, int], ...]
    skipped: int
    stopped_at: datetime | None = None


def choose(
    mode: Mode, slots: Sequence[datetime], known: Mapping[datetime, KnownSlot], coming: Coming, room: int
) -> SlotChoice:
    """Check slots in order until `room` of them are chosen and one more would be."""
    chosen: list[tuple[datetime, int]] = []
    skipped = 0
    for slot in slots:
        generation = generation_of(mode, known.get(slot) or coming.dropped(slot), is_coming=slot in coming)
        if generation is None:
            skipped += 1
        elif len(chosen) == room:
            return SlotChoice(tuple(chosen), skipped, slot)
        else:
            chosen.append((slot, generation))
    return SlotChoice(tuple(chosen), skipped)


def bounds(timing: Timing, since: datetime, until: datetime) -> tuple[datetime, datetime]:
    """Return the part of a range that the job's `startAt` and `endAt` allow: first included, second excluded."""
    first = since if timing.start_at is None else max(since, timing.start_at)
    end = until if timing.end_at is None else min(until, timing.end_at + _MOMENT)
    return first, end


def starts(rate: Rate | None, next_start: datetime | None, now: datetime, most: int) -> list[datetime]:
    """Return the starts of up to `most` instances: now, or spaced by the rate and at most `AHEAD` after now."""
    if rate is None:
        return [now] * most
    first, gap = max(next_start or now, now), rate.per / rate.count
    return [at for n in range(most) if (at := first + n * gap) <= now + AHEAD]


def after(rate: Rate | None, started: Sequence[datetime], next_start: datetime | None) -> datetime | None:
    """Return when the next instance may start, after those in `started`."""
    return next_start if rate is None or not started else started[-1] + rate.per / rate.count


def smoothed(pace: float | None, ended: int, elapsed: timedelta) -> float | None:
    """Return the ends per second after `ended` more in `elapsed`; the last ten seconds count most."""
    seconds = elapsed.total_seconds()
    if seconds <= 0:
        return pace
    if pace is None:
        return ended / max(seconds, 1.0) if ended else None
    return pace + (ended / seconds - pace) * (1 - exp(-seconds / SMOOTHING.total_seconds()))


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a backfill. `slots`: all slots of its range; `total`: those that were to be run."""

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
        """Return the number of live instances: waiting, running, or waiting for a retry."""
        return self.made - self.succeeded - self.failed - self.cancelled

    @property
    def left(self) -> int:
        """Return the number that has not ended, including slots still to be created."""
        return max(self.total - self.made, 0) + self.running

    def percent(self, status: BackfillStatus) -> float:
        """Return the percentage that has ended; 100 only when the backfill is done."""
        if status is BackfillStatus.DONE:
            return 100.0
        ended = self.made - self.running
        return min(round(100.0 * ended / max(self.total, self.made, 1), 1), 99.9)

    def eta(self, status: BackfillStatus, now: datetime, rate: Rate | None) -> datetime | None:
        """Return when the backfill will be done at its recent pace; None if that is unknown."""
        pace = self.pace or (rate.per_second if rate is not None else None)
        if status is not BackfillStatus.RUNNING or not pace:
            return None
        try:
            return now + timedelta(seconds=self.left / pace)
        except OverflowError:
            return None
