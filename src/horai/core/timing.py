"""The time fields of a definition: when a job fires, and how it treats slots that are late or overlap."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from horai.core.assets import WHEN
from horai.core.errors import Invalid
from horai.core.validation import Validation
from horai.text import Hint, Wrong, mismatch
from horai.time import cron, exclusions
from horai.time.calendar_rule import CalendarRule, OnHoliday, on_holiday_of
from horai.time.cron import Dialect, DstPolicy
from horai.time.durations import parse_duration
from horai.time.jitter import LONGEST_JITTER
from horai.time.misfire import DEFAULT, MisfireRule
from horai.time.overlap import Overlap
from horai.time.schedule import (
    EPOCH,
    CronSchedule,
    EverySchedule,
    Schedule,
    first_open,
    from_spec,
    identity,
    next_after,
    next_from,
    to_spec,
)
from horai.time.work_calendar import WorkCalendar
from horai.time.zones import zone

CALENDAR_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}")
SCHEDULE_FIELDS = ("cron", "every", "at", "delay")
INSTANT_FIELDS = ("at", "anchor", "startAt", "endAt")
BESIDE_CRON = ("dst", "dialect")
BESIDE_EVERY = ("anchor", "everyFrom")
BESIDE_BOTH = ("timezone", "calendar", "startAt", "endAt", "jitter", "misfire", "misfireAfter", "overlap")
"""Fields that have a meaning only beside a cron, an every, or either of them."""
SHORTEST_MISFIRE_AFTER, LONGEST_MISFIRE_AFTER = timedelta(seconds=1), timedelta(days=1)
"""Every slot is a few milliseconds late: a shorter limit would skip them all."""

LONGEST_IDENTITY = 2_000
"""Characters of an identity: an index entry takes at most 2,704 bytes."""
NONE_BETWEEN = Wrong.NONE_BETWEEN()
NONE_OPEN = Wrong.NONE_OPEN()


@dataclass(frozen=True, slots=True)
class Rhythm:
    """The schedule that jobs share: they fire at the same instants and treat late slots alike.

    A rhythm has one row, one cursor, one trigger.
    """

    schedule: Schedule
    misfire: MisfireRule = DEFAULT

    @property
    def identity(self) -> str:
        """Return a text that is equal for equal rhythms; a long one, with many excluded dates, is cut and hashed."""
        text = identity(self.schedule) + self.misfire.identity
        return text if len(text) <= LONGEST_IDENTITY else f"{text[:200]} sha256={sha256(text.encode()).hexdigest()}"

    def to_spec(self) -> dict[str, Any]:
        """Return the rhythm as a JSON object; `from_spec` restores an equal rhythm."""
        late = {} if self.misfire == DEFAULT else {"misfire": self.misfire.to_spec()}
        return {**to_spec(self.schedule), **late}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> "Rhythm":
        """Return the rhythm of a JSON object. Raise ValueError for an object that is not one."""
        when = {name: value for name, value in spec.items() if name != "misfire"}
        return cls(from_spec(when), MisfireRule.from_spec(spec["misfire"]) if "misfire" in spec else DEFAULT)


@dataclass(frozen=True, slots=True)
class Timing:
    """The valid time fields of a job.

    `is_from_finish`: the interval counts from the end of the previous run, so there is no calendar to follow.
    """

    schedule: Schedule | None = None
    is_from_finish: bool = False
    misfire: MisfireRule = DEFAULT
    overlap: Overlap = Overlap.allow
    jitter: timedelta = timedelta(0)
    start_at: datetime | None = None
    end_at: datetime | None = None

    @property
    def rhythm(self) -> Rhythm | None:
        """Return the rhythm that the trigger follows for the job; None if there is nothing to follow."""
        return None if self.schedule is None or self.is_from_finish else Rhythm(self.schedule, self.misfire)

    @property
    def after_finish(self) -> timedelta | None:
        """Return the time from the end of a run to the next one; None if the interval does not count from the end."""
        return self.schedule.interval if self.is_from_finish and isinstance(self.schedule, EverySchedule) else None

    def next_after_finish(self, finished_at: datetime | None, active_from: datetime) -> datetime | None:
        """Return the next fire of a job that counts from the end of a run; None if there is none.

        Its first fire is a slot of its fixed rate.
        """
        if self.schedule is None or self.after_finish is None:
            return None
        if finished_at is None or finished_at + self.after_finish <= active_from:
            return self.next_after(active_from)
        fire = finished_at + self.after_finish
        fire = first_open(self.schedule, fire if self.start_at is None else max(fire, self.start_at))
        return None if fire is None or (self.end_at is not None and fire > self.end_at) else fire

    @property
    def is_readable(self) -> bool:
        """Return whether fires can be computed: the calendar that the schedule names was read."""
        rule = None if self.schedule is None else self.schedule.calendar
        return rule is None or rule.days is not None

    @property
    def is_gated(self) -> bool:
        """Return whether the end of one run decides about another."""
        return self.is_from_finish or self.overlap is not Overlap.allow

    def next_after(self, after: datetime) -> datetime | None:
        """Return the first slot of this job strictly after `after`; None if there is none."""
        if self.schedule is None:
            return None
        is_early = self.start_at is not None and after < self.start_at
        fire = (
            next_from(self.schedule, self.start_at) if is_early and self.start_at else next_after(self.schedule, after)
        )
        return None if fire is None or (self.end_at is not None and fire > self.end_at) else fire


@dataclass(frozen=True, slots=True)
class _Written:
    """The document, the calendar that it names if that was read, and the collection of the document's faults."""

    document: Mapping[str, Any]
    days: WorkCalendar | None = None
    faults: Validation = field(default_factory=Validation)

    def get(self, name: str) -> Any:
        return self.document.get(name)

    def duration(self, name: str, longest: timedelta) -> timedelta | None:
        text = self.get(name)
        found = None if text is None else self.faults.reading(name, lambda: parse_duration(text), None)
        if found is not None and found > longest:
            self.faults.add(name, Wrong.LONGER_THAN(most=longest // timedelta(hours=1)))
        return found

    def word(self, name: str, words: Iterable[str]) -> str | None:
        given, known = self.get(name), tuple(words)
        if given is None or given in known:
            return given
        self.faults.add(name, Wrong.NOT_ONE_OF(value=given, allowed=", ".join(known)))
        return None


def calendar_named(document: Mapping[str, Any]) -> str | None:
    """Return the name of the calendar that a document follows; None if it names none."""
    given: Any = document.get("calendar")
    return given.get("name") if isinstance(given, Mapping) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]


def read_timing(document: Mapping[str, Any], faults: Validation, days: WorkCalendar | None = None) -> Timing:
    """Return the time fields of a document whose instants are datetimes; add faults to `faults`.

    `days` is the calendar that the document names. Without it the timing is valid but computes no fire.
    """
    written = _Written(document, days, faults)
    given = [name for name in SCHEDULE_FIELDS if document.get(name) is not None]
    if len(given) > 1:
        faults.add(given[1], Wrong.STANDS_BESIDE(other=given[0]), Hint.ONE_SCHEDULE())
        return Timing()
    _refuse_strays(written, given[0] if given else None)
    schedule = _schedule(written, given)
    if schedule is None:
        return Timing(overlap=_overlap(written))
    timing = Timing(
        schedule,
        written.word("everyFrom", ("anchor", "finish")) == "finish",
        faults.reading("misfire", lambda: _misfire(written), DEFAULT),
        _overlap(written),
        written.duration("jitter", LONGEST_JITTER) or timedelta(0),
        written.get("startAt"),
        written.get("endAt"),
    )
    _check(timing, faults)
    return timing


def require_timing(document: Mapping[str, Any], days: WorkCalendar | None = None) -> Timing:
    """Return the timing of a document that has a cron or an interval. Raise `Invalid` with every fault otherwise."""
    if document.get("cron") is None and document.get("every") is None:
        raise Invalid.field("cron", Wrong.MISSING(), Hint.GIVE_CRON())
    faults = Validation()
    timing = read_timing(document, faults, days)
    faults.raise_if_any()
    return timing


def _overlap(written: _Written) -> Overlap:
    return Overlap[written.word("overlap", Overlap.__members__) or "allow"]


def _refuse_strays(written: _Written, kind: str | None) -> None:
    for names, kinds in ((BESIDE_CRON, ("cron",)), (BESIDE_EVERY, ("every",)), (BESIDE_BOTH, ("cron", "every"))):
        for name in names:
            if name == "overlap" and written.get(WHEN) is not None:
                continue  # instances that assets start have no slots, and may not overlap either
            if kind not in kinds and written.get(name) not in (None, *_HARMLESS.get(name, ())):
                written.faults.add(name, Wrong.ONLY_WITH(kinds=" or ".join(kinds)))


_HARMLESS: Mapping[str, tuple[str, ...]] = {"misfire": ("once",), "overlap": ("allow",), "everyFrom": ("anchor",)}
"""Values that only repeat the default are accepted with any schedule."""


def _schedule(written: _Written, given: list[str]) -> Schedule | None:
    if given not in (["cron"], ["every"]):
        return None
    faults = written.faults
    place = faults.reading("timezone", lambda: zone(written.get("timezone") or "UTC"), zone("UTC"))
    excluded, rule = _calendar(written)
    if given == ["every"]:
        if rule is not None and rule.on_holiday is not OnHoliday.skip:
            faults.add("calendar", Wrong.INTERVAL_MOVED())
            rule = None
        anchor = written.get("anchor") or EPOCH
        return faults.reading(
            "every",
            lambda: EverySchedule(parse_duration(written.get("every")), anchor, place.key, excluded, rule),
            None,
        )
    spec: Mapping[str, Any] = written.get("dst") or {}
    given_dst = {name: word for name, word in spec.items() if word is not None}
    dst = faults.reading("dst", lambda: DstPolicy.from_spec(given_dst), DstPolicy())
    dialect = written.word("dialect", Dialect)
    schedule = CronSchedule(
        written.get("cron"), place.key, dst, None if dialect is None else Dialect(dialect), excluded, rule
    )
    return faults.reading("cron", lambda: _parsed(schedule), None)


def _calendar(written: _Written) -> tuple[tuple[str, ...], CalendarRule | None]:
    """Return the excluded dates, or the rule of a named calendar."""
    name, given = calendar_named(written.document), written.get("calendar")
    if name is None:
        return written.faults.reading("calendar", lambda: exclusions.check(given or ()), ()), None
    if not CALENDAR_NAME.fullmatch(name):
        written.faults.add("calendar", mismatch(name, CALENDAR_NAME))
        return (), None
    word = given.get("onHoliday") or OnHoliday.skip.value
    return (), written.faults.reading("calendar", lambda: CalendarRule(written.days, on_holiday_of(word), name), None)


def _parsed(schedule: CronSchedule) -> CronSchedule:
    _ = schedule.cron
    return schedule


def _misfire(written: _Written) -> MisfireRule:
    word: Any = written.get("misfire")
    spec: Mapping[str, Any] = {"policy": word} if isinstance(word, str) else word or {}
    after = written.duration("misfireAfter", LONGEST_MISFIRE_AFTER)
    if after is not None and after < SHORTEST_MISFIRE_AFTER:
        written.faults.add("misfireAfter", Wrong.SHORTER_THAN(least="1s"))
    known = {name: value for name, value in spec.items() if value is not None}
    return MisfireRule.from_spec(known if after is None else {**known, "after": written.get("misfireAfter")})


def _check(timing: Timing, faults: Validation) -> None:
    """Add the faults that show only when all fields are known."""
    if timing.is_from_finish and timing.overlap is not Overlap.allow:
        faults.add("overlap", Wrong.OVERLAP_WITH_FINISH())
    if timing.is_from_finish and timing.misfire != DEFAULT:
        faults.add("misfire", Wrong.MISFIRE_WITH_FINISH())
    if timing.start_at is not None and timing.end_at is not None and timing.end_at < timing.start_at:
        faults.add("endAt", Wrong.END_BEFORE_START())
    elif timing.schedule is not None and timing.is_readable and timing.next_after(EPOCH) is None:
        _blame(timing.schedule, timing, faults)


def _blame(schedule: Schedule, timing: Timing, faults: Validation) -> None:
    """Add a fault to the field that leaves a schedule without a slot."""
    if next_after(replace(schedule, excluded=(), calendar=None), EPOCH) is None:
        faults.add("cron" if isinstance(schedule, CronSchedule) else "every", cron.NO_NEXT_FIRE)
    elif next_after(schedule, EPOCH) is None:
        faults.add("calendar", NONE_OPEN)
    else:
        faults.add("startAt" if timing.end_at is None else "endAt", NONE_BETWEEN)
