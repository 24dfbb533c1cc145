"""The kinds of alert rules, their fields, and the deadlines of a day. Pure.

| kind | fires while | fields |
|---|---|---|
| INSTANCE_DEAD | an instance died and its dead letter is open | job, tag |
| RUN_BLOCKED | a run of a workflow is blocked | workflow |
| NOT_SUCCESS_BY | a job has no SUCCESS of the day at a time of day | job, by, timezone, weekdays, calendar |
| JOB_LATE | instances of a job are due and not started | job, tag, after |
| QUEUE_WAIT | the oldest due instance of a queue waits | queue, after |
| HEARTBEAT_MISSING | an external job has not reported | heartbeat |
| RECONCILE_DRIFT | the last report of a reconciler has findings or an error | reconciler |
| MODE_ENTERED | a mode of the governor is in force | modes |
| BUDGET_BURN | the error budget of the last hour is spent too fast | burnRate |
| RUN_STUCK | a run takes much longer than its job usually does | job, tag |
| QUEUE_CLOGGED | stuck runs hold all slots of a queue | queue |
| SINK_PARKED | a sink is parked, and not active again | sink |
| ARCHIVE_FAILED | a day of history could not be archived | |
| PARTITION_MISSING | a partition of today or tomorrow is missing, or rows lie in a default partition | |
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Any

from horai.core.controls import GovernorMode
from horai.core.validation import Validation
from horai.text import Wrong
from horai.time.durations import format_duration, parse_duration
from horai.time.work_calendar import WorkCalendar, is_working_day
from horai.time.zones import zone


class RuleKind(StrEnum):
    """The condition that a rule watches."""

    INSTANCE_DEAD = "INSTANCE_DEAD"
    RUN_BLOCKED = "RUN_BLOCKED"
    NOT_SUCCESS_BY = "NOT_SUCCESS_BY"
    JOB_LATE = "JOB_LATE"
    QUEUE_WAIT = "QUEUE_WAIT"
    HEARTBEAT_MISSING = "HEARTBEAT_MISSING"
    RECONCILE_DRIFT = "RECONCILE_DRIFT"
    MODE_ENTERED = "MODE_ENTERED"
    BUDGET_BURN = "BUDGET_BURN"
    RUN_STUCK = "RUN_STUCK"
    QUEUE_CLOGGED = "QUEUE_CLOGGED"
    SINK_PARKED = "SINK_PARKED"
    ARCHIVE_FAILED = "ARCHIVE_FAILED"
    PARTITION_MISSING = "PARTITION_MISSING"


FIELDS: Mapping[RuleKind, tuple[str, ...]] = {
    RuleKind.INSTANCE_DEAD: ("job", "tag"),
    RuleKind.RUN_BLOCKED: ("workflow",),
    RuleKind.NOT_SUCCESS_BY: ("job", "by", "timezone", "weekdays", "calendar"),
    RuleKind.JOB_LATE: ("job", "tag", "after"),
    RuleKind.QUEUE_WAIT: ("queue", "after"),
    RuleKind.HEARTBEAT_MISSING: ("heartbeat",),
    RuleKind.RECONCILE_DRIFT: ("reconciler",),
    RuleKind.MODE_ENTERED: ("modes",),
    RuleKind.BUDGET_BURN: ("burnRate",),
    RuleKind.RUN_STUCK: ("job", "tag"),
    RuleKind.QUEUE_CLOGGED: ("queue",),
    RuleKind.SINK_PARKED: ("sink",),
    RuleKind.ARCHIVE_FAILED: (),
    RuleKind.PARTITION_MISSING: (),
}
REQUIRED: Mapping[RuleKind, tuple[str, ...]] = {RuleKind.NOT_SUCCESS_BY: ("job", "by")}
OF_KIND = tuple(dict.fromkeys(name for names in FIELDS.values() for name in names))
"""Every field that only some kinds have."""
ONLY_PLATFORM = frozenset({RuleKind.BUDGET_BURN, RuleKind.ARCHIVE_FAILED, RuleKind.PARTITION_MISSING})
"""The kinds that need a caller of the platform: they are about all tenants."""
OF_PLATFORM = ONLY_PLATFORM | {RuleKind.MODE_ENTERED}
"""The kinds that a rule of no tenant may have."""
MODES = tuple(mode.value for mode in GovernorMode if mode is not GovernorMode.NORMAL)
WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
DEFAULTS: Mapping[RuleKind, Mapping[str, Any]] = {
    RuleKind.JOB_LATE: {"after": "5m"},
    RuleKind.QUEUE_WAIT: {"after": "10m"},
    RuleKind.NOT_SUCCESS_BY: {"timezone": "UTC", "weekdays": list(WEEKDAYS)},
    RuleKind.BUDGET_BURN: {"burnRate": 10.0},
}
LONGEST_GROUP_WAIT = timedelta(hours=1)
LEAST_REPEAT = timedelta(minutes=1)
DAYS_SEARCHED = 366
"""Days before and after now in which a deadline is looked for: a calendar may close for long."""
_TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True, slots=True)
class RuleWish:
    """A rule as it is to be stored. `fields` are those of its kind, with their defaults."""

    kind: RuleKind
    fields: Mapping[str, Any]
    wait: timedelta | None
    group_wait: timedelta
    repeat_every: timedelta


_FIGURES: Mapping[RuleKind, tuple[Callable[[Mapping[str, Any]], float], float]] = {
    RuleKind.RUN_BLOCKED: (lambda data: len(data["dead"]), 1),
    RuleKind.MODE_ENTERED: (lambda data: data["level"], 1),
    RuleKind.JOB_LATE: (lambda data: data["instances"], 2),
    RuleKind.QUEUE_WAIT: (lambda data: data["instances"], 2),
    RuleKind.BUDGET_BURN: (lambda data: data["burnRate"], 2),
    RuleKind.RECONCILE_DRIFT: (lambda data: data["missing"] + data["surplus"] + data["faulty"], 2),
}
"""The figure that tells how bad the condition is, and the factor by which a condition that is worse exceeds it."""


def is_worse(kind: RuleKind, before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Return whether a condition is clearly worse than before. Kinds without a figure never are."""
    if kind not in _FIGURES:
        return False
    figure, factor = _FIGURES[kind]
    return figure(now) > figure(before) and figure(now) >= factor * figure(before)


def checked_rule(kind: RuleKind, given: Mapping[str, Any], group_wait: str, repeat_every: str) -> RuleWish:
    """Return the rule of these fields. Raise `Invalid` with every fault."""
    faults = Validation()
    fields = {name: value for name, value in given.items() if value is not None}
    for name in fields:
        if name not in FIELDS[kind]:
            faults.add(name, Wrong.NOT_OF_RULE(kind=kind, fields=", ".join(FIELDS[kind])))
    for name in REQUIRED.get(kind, ()):
        if name not in fields:
            faults.add(name, Wrong.MISSING())
    fields = {**DEFAULTS.get(kind, {}), **fields}
    wait = _duration(faults, "after", fields.get("after"))
    if wait is not None:
        fields["after"] = format_duration(wait)
    if "by" in fields and not _TIME_OF_DAY.fullmatch(fields["by"]):
        faults.add("by", Wrong.NOT_TIME_OF_DAY())
    if "timezone" in fields:
        faults.reading("timezone", lambda: zone(fields["timezone"]), zone("UTC"))
    for name, known in (("weekdays", WEEKDAYS), ("modes", MODES)):
        _check_words(faults, name, fields.get(name), known)
    group = _duration(faults, "groupWait", group_wait) or timedelta(0)
    if group > LONGEST_GROUP_WAIT:
        faults.add("groupWait", Wrong.NOT_BETWEEN(low="0s", high="1h"))
    repeat = _duration(faults, "repeatEvery", repeat_every) or timedelta(0)
    if repeat < LEAST_REPEAT:
        faults.add("repeatEvery", Wrong.SHORTER_THAN(least="1m"))
    faults.raise_if_any()
    return RuleWish(kind, fields, wait, group, repeat)


def _duration(faults: Validation, field: str, text: str | None) -> timedelta | None:
    return None if text is None else faults.reading(field, lambda: parse_duration(text), timedelta(0))


def _check_words(faults: Validation, field: str, words: list[str] | None, known: tuple[str, ...]) -> None:
    for word in words or ():
        if word not in known:
            faults.add(field, Wrong.NOT_ONE_OF(value=word[:40], allowed=", ".join(known)))
    if words is not None and not words:
        faults.add(field, Wrong.MISSING())


@dataclass(frozen=True, slots=True)
class DeadlineWindow:
    """The slots that must have a SUCCESS at a deadline: those after `begin`. `deadline` is in the past."""

    begin: datetime
    deadline: datetime


def window_of(fields: Mapping[str, Any], calendar: WorkCalendar | None, now: datetime) -> DeadlineWindow | None:
    """Return the window of the last deadline of a rule; None if no day of the last year has one.

    It begins at the same time of the day before. Days off of the calendar have no deadline.
    """
    day = now.astimezone(zone(fields["timezone"])).date()
    for _ in range(DAYS_SEARCHED):
        if _has_deadline(fields, calendar, day) and (deadline := _at(fields, day)) <= now:
            return DeadlineWindow(_at(fields, day - timedelta(days=1)), deadline)
        day -= timedelta(days=1)
    return None


def next_deadline(fields: Mapping[str, Any], calendar: WorkCalendar | None, now: datetime) -> datetime | None:
    """Return the first deadline of a rule after `now`; None if no day of the next year has one."""
    day = now.astimezone(zone(fields["timezone"])).date()
    for _ in range(DAYS_SEARCHED):
        if _has_deadline(fields, calendar, day) and (deadline := _at(fields, day)) > now:
            return deadline
        day += timedelta(days=1)
    return None


def _has_deadline(fields: Mapping[str, Any], calendar: WorkCalendar | None, day: date) -> bool:
    is_listed = WEEKDAYS[day.weekday()] in fields["weekdays"]
    return is_listed and (calendar is None or is_working_day(calendar, day))


def _at(fields: Mapping[str, Any], day: date) -> datetime:
    hour, minute = fields["by"].split(":")
    return datetime.combine(day, time(int(hour), int(minute)), zone(fields["timezone"])).astimezone(UTC)
