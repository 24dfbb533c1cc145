"""Rolling refresh: a job that runs again for each of its entities whenever a window has passed.

Tick and window are separate. The *tick* (the job's cron or every) says when to check, the *window* which entities are
then due: those that never ran, and those whose last run ended at least a window before the tick. The tick's scheduled
time counts, never the time at which a node processed it: a late tick finds the same entities.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any

from horai.core.validation import Validation
from horai.text import Hint, Wrong
from horai.time.durations import format_duration, parse_duration

REFRESH_HANDLER = "horai:refresh"
TICKS = ":refresh"
"""The suffix of the job that creates a refresh job's ticks; names that people choose have no colon."""

DEFAULT_LIMIT, MOST = 1_000, 10_000
SHORTEST_WINDOW = timedelta(seconds=1)
SLOWEST = timedelta(seconds=1)
"""The runs of a tick are never further apart than this: a handful is done at once."""
SHARE = 2
"""Runs are spread over 1/`SHARE` of the time until the next tick; the rest is for runs longer than expected."""
LOOK, LONGEST_LOOK = timedelta(milliseconds=200), timedelta(minutes=5)
CROWDED, LONGEST_CROWDED = timedelta(seconds=1), timedelta(seconds=10)
PATIENCE, CROWDED_PATIENCE = 4, 100
"""A waiting tick checks again after 1/`PATIENCE` of the time since it began, because each check is an event."""


class Status(IntEnum):
    """The status of an entity, with the numbers of seed 003."""

    NOT_RUN = 0
    RUNNING = 1
    SUCCESS = 2
    FAILED = 3


@dataclass(frozen=True, slots=True)
class RefreshRule:
    """The time a run stays fresh, the number of entities loaded at a time, and whether a new one runs at once."""

    window: timedelta
    limit: int = DEFAULT_LIMIT
    run_on_add: bool = False


def read_refresh(document: Mapping[str, Any], faults: Validation) -> RefreshRule | None:
    """Return the member `refresh` of a definition; add its faults to `faults`."""
    written: Mapping[str, Any] | None = document.get("refresh")
    if written is None:
        return None
    if document.get("cron") is None and document.get("every") is None:
        faults.add("refresh", Wrong.NO_TICK(), Hint.GIVE_TICK())
    if document.get("everyFrom") == "finish":
        faults.add("everyFrom", Wrong.FINISH_WITH_REFRESH())
    text = written.get("window")
    window = SHORTEST_WINDOW
    if text is None:
        faults.add("refresh.window", Wrong.MISSING(), Hint.GIVE_WINDOW())
    else:
        window = faults.reading("refresh.window", lambda: parse_duration(text), SHORTEST_WINDOW)
    if window < SHORTEST_WINDOW:
        faults.add("refresh.window", Wrong.SHORTER_THAN(least="1s"))
    limit = written.get("limit")
    limit = DEFAULT_LIMIT if limit is None else limit
    if not 1 <= limit <= MOST:
        faults.add("refresh.limit", Wrong.NOT_BETWEEN(low=1, high=MOST))
    return RefreshRule(window, limit, bool(written.get("runOnAdd")))


def refresh_document(refresh: RefreshRule) -> dict[str, Any]:
    """Return the rule as people write it, with every default filled in."""
    return {"window": format_duration(refresh.window), "limit": refresh.limit, "runOnAdd": refresh.run_on_add}


def ticks_name(name: str) -> str:
    """Return the name of the job that creates the ticks of the refresh job `name`."""
    return name + TICKS


_OF_THE_TICK = (
    *("name", "cron", "every", "dialect", "dst", "anchor", "timezone", "calendar", "startAt", "endAt"),
    *("jitter", "misfire", "misfireAfter", "overlap", "priority", "status"),
    *("keepHistory", "keepDeadLetters"),
)


def ticks_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definition of the job that creates a refresh job's ticks: its schedule, and a built-in handler."""
    kept = {field: document[field] for field in _OF_THE_TICK if document.get(field) is not None}
    return {**kept, "target": {"type": "worker", "handler": REFRESH_HANDLER}}


@dataclass(frozen=True, slots=True)
class Due:
    """An entity that a tick may load. `finished_at`: when its last run ended; None for one that never ran."""

    key: str
    finished_at: datetime | None


def is_due(entity: Due, added_at: datetime, tick: datetime, window: timedelta) -> bool:
    """Return whether a tick loads the entity: the condition of the SQL statement that loads.

    It is the condition of the seed; a new entity is due if the tick came after it was added.
    """
    return added_at <= tick if entity.finished_at is None else entity.finished_at <= tick - window


@dataclass(frozen=True, slots=True)
class RefreshPace:
    """The start times of the runs of one tick: evenly spaced, the longest unrefreshed entity first.

    No run begins later than a window and a tick after the entity's last run.
    """

    tick: datetime
    period: timedelta
    """The time until the next tick."""
    window: timedelta
    count: int
    """The number of due entities."""

    @property
    def apart(self) -> timedelta:
        """Return the time from one run to the next."""
        return min(SLOWEST, self.period / SHARE / max(self.count, 1))

    def wanted(self, position: int, finished_at: datetime | None) -> datetime:
        """Return when the run at `position`, in loading order, should begin."""
        evenly = self.tick + self.apart * position
        if finished_at is None:
            return evenly
        return max(self.tick, min(evenly, finished_at + self.window + self.period))

    def spread(self, first: int, loaded: Sequence[Due]) -> list[datetime]:
        """Return the start times of the runs of a load that begins at position `first`."""
        return [self.wanted(first + place, entity.finished_at) for place, entity in enumerate(loaded)]


def until_ended(began: datetime, now: datetime) -> timedelta:
    """Return how long a tick that has loaded all waits for its runs to end: longer, the longer it has taken so far."""
    return min(max((now - began) / PATIENCE, LOOK), LONGEST_LOOK)


def until_begun(began: datetime, now: datetime) -> timedelta:
    """Return how long a tick waits for its last load to begin."""
    return min(max((now - began) / CROWDED_PATIENCE, CROWDED), LONGEST_CROWDED)
