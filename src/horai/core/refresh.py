"""Rolling refresh: a job that comes back to each of its entities whenever a window has passed over them.

Two things are apart: the *tick* (the job's cron or every) says when to look, the *window* which entities are then due:
those never run, and those whose last run ended at least a window before the tick. The tick's scheduled time counts, never
the time at which somebody got round to it: a late tick finds the same entities.
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
"""What the job that makes a refresh job's ticks is called after its name; no name that people give has a colon."""

DEFAULT_LIMIT, MOST = 1_000, 10_000
SHORTEST_WINDOW = timedelta(seconds=1)
SLOWEST = timedelta(seconds=1)
"""The runs of a tick are never further apart than this: a handful is done at once."""
SHARE = 2
"""They are spread over this part of the time until the next tick: the rest is for what takes longer than thought."""
LOOK, LONGEST_LOOK = timedelta(milliseconds=200), timedelta(minutes=5)
CROWDED, LONGEST_CROWDED = timedelta(seconds=1), timedelta(seconds=10)
PATIENCE, CROWDED_PATIENCE = 4, 100
"""A tick that waits looks again when a part as much time has gone by as since it began: each look is an event."""


class Status(IntEnum):
    """Of an entity, by the numbers of seed 003."""

    NOT_RUN = 0
    RUNNING = 1
    SUCCESS = 2
    FAILED = 3


@dataclass(frozen=True, slots=True)
class RefreshRule:
    """How long a run stays fresh, how many entities are loaded at a time, and whether a new one runs at once."""

    window: timedelta
    limit: int = DEFAULT_LIMIT
    run_on_add: bool = False


def read_refresh(document: Mapping[str, Any], faults: Validation) -> RefreshRule | None:
    """The member `refresh` of a definition; what is wrong with it goes to `faults`."""
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
    """As people write it, with every default spelled out."""
    return {"window": format_duration(refresh.window), "limit": refresh.limit, "runOnAdd": refresh.run_on_add}


def ticks_name(name: str) -> str:
    """What the job is called that makes the ticks of the refresh job `name`."""
    return name + TICKS


_OF_THE_TICK = (
    *("name", "cron", "every", "dialect", "dst", "anchor", "timezone", "calendar", "startAt", "endAt"),
    *("jitter", "misfire", "misfireAfter", "overlap", "priority", "status"),
)


def ticks_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """The definition of the job that makes the ticks of a refresh job: its schedule, and a handler of our own."""
    kept = {field: document[field] for field in _OF_THE_TICK if document.get(field) is not None}
    return {**kept, "target": {"type": "worker", "handler": REFRESH_HANDLER}}


@dataclass(frozen=True, slots=True)
class Due:
    """An entity that a tick may load. `finished_at`: when its last run ended; None for one that never ran."""

    key: str
    finished_at: datetime | None


def is_due(entity: Due, added_at: datetime, tick: datetime, window: timedelta) -> bool:
    """What the statement that loads asks, in words: the seed's condition, and for new ones that the tick came after them."""
    return added_at <= tick if entity.finished_at is None else entity.finished_at <= tick - window


@dataclass(frozen=True, slots=True)
class RefreshPace:
    """When the runs of one tick begin: evenly apart, the longest unrefreshed first, and none later than a window and a
    tick after its last.
    """

    tick: datetime
    period: timedelta
    """Until the next tick."""
    window: timedelta
    count: int
    """How many were due."""

    @property
    def apart(self) -> timedelta:
        """From one run to the next."""
        return min(SLOWEST, self.period / SHARE / max(self.count, 1))

    def wanted(self, position: int, finished_at: datetime | None) -> datetime:
        """When the run at a position, in the order of loading, should begin."""
        evenly = self.tick + self.apart * position
        if finished_at is None:
            return evenly
        return max(self.tick, min(evenly, finished_at + self.window + self.period))

    def spread(self, first: int, loaded: Sequence[Due]) -> list[datetime]:
        """The same for a load that begins at position `first`."""
        return [self.wanted(first + place, entity.finished_at) for place, entity in enumerate(loaded)]


def until_ended(began: datetime, now: datetime) -> timedelta:
    """How long a tick waits that has loaded all and whose runs have not ended: the longer the longer it took so far."""
    return min(max((now - began) / PATIENCE, LOOK), LONGEST_LOOK)


def until_begun(began: datetime, now: datetime) -> timedelta:
    """How long a tick waits whose last load has not been begun."""
    return min(max((now - began) / CROWDED_PATIENCE, CROWDED), LONGEST_CROWDED)
