"""Where a schedule stands by made-up rules of a zone, and where by others."""

from datetime import datetime

from zone_rules import Clock, Edition, at

from horai.time import zones
from horai.time.schedule import Schedule, next_after
from horai.time.zone_change import ZoneMark, mark_before, recomputed

PLACE = "Europe/Berlin"


def edition(clock: Clock) -> Edition:
    return Edition("made up", {PLACE: clock})


def marked(schedule: Schedule, now: datetime, rules: Clock) -> tuple[datetime, ZoneMark]:
    """Where it stands at `now`, all being done, and its mark, by these rules."""
    with zones.use(edition(rules)):
        coming = next_after(schedule, now)
        assert coming is not None
        return coming, mark_before(schedule, coming, now)


def moved(schedule: Schedule, now: str, old: Clock, new: Clock) -> tuple[datetime, datetime | None]:
    """Where it stands at `now` by the old rules, and where by the new."""
    coming, mark = marked(schedule, at(now), old)
    with zones.use(edition(new)):
        return coming, recomputed(schedule, coming, mark)
