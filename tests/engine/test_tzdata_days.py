"""Over days of virtual time and a change of the zone rules: what fired, by the clock that was on the wall."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest
from sizes import IS_LONG
from zone_rules import HOUR, Clock, Edition, at

from horai import Horai
from horai.time import zones
from horai.time.schedule import CronSchedule, wall_of

PLACE = "Europe/Berlin"
DAY = 24 * HOUR
MIDDLE_EUROPE = Clock(HOUR, [("2027-03-28T01:00Z", 2 * HOUR), ("2027-10-31T01:00Z", HOUR)])
WINTER_FOR_EVER = Clock(HOUR)
SUMMER_FOR_EVER = Clock(HOUR, [("2027-03-28T01:00Z", 2 * HOUR)])
AN_HOUR_ON_FROM_TOMORROW = Clock(HOUR, [("2027-06-11T00:00Z", 2 * HOUR)])
BEFORE_SAMOA = Clock(-10 * HOUR)
SAMOA = Clock(-10 * HOUR, [("2027-12-30T10:00Z", 14 * HOUR)])

DAYS = 2 * DAY
JOBS: dict[str, dict[str, Any]] = {
    "nine": {"cron": "0 9 * * *"},
    "hours": {"cron": "0 9-17 * * *"},
    "night": {"cron": "30 2 * * *"},
    "half": {"cron": "30 */2 * * *" if IS_LONG else "30 */6 * * *"},
    "interval": {"every": "5h"},
}


@dataclass(frozen=True, slots=True)
class Change:
    """Rules that give way to others at a moment, and when a daily 09:00 fires on the days around it."""

    old: Clock
    new: Clock
    at: str
    nine: Sequence[str]

    def wall(self, fire: datetime) -> datetime:
        """Return the local time of a fire: by the old rules until they changed, then by the new."""
        with zones.use(Edition("any", {PLACE: self.old if fire <= at(self.at) else self.new})):
            return wall_of(CronSchedule("0 0 * * *", PLACE), fire)


CHANGES = {
    "summer time is cancelled on its eve": Change(
        MIDDLE_EUROPE,
        WINTER_FOR_EVER,
        "2027-03-27 12:00",
        ["03-26 08:00", "03-27 08:00", "03-28 08:00", "03-29 08:00"],
    ),
    "summer time is cancelled after a slot of its first day": Change(
        MIDDLE_EUROPE, WINTER_FOR_EVER, "2027-03-28 07:30", ["03-26 08:00", "03-27 08:00", "03-28 07:00", "03-29 08:00"]
    ),
    "summer time is kept": Change(
        MIDDLE_EUROPE,
        SUMMER_FOR_EVER,
        "2027-10-30 12:00",
        ["10-29 07:00", "10-30 07:00", "10-31 07:00", "11-01 07:00"],
    ),
    "the rules come late, and a slot that was to come has been": Change(
        MIDDLE_EUROPE,
        SUMMER_FOR_EVER,
        "2027-11-03 07:30",
        ["11-01 08:00", "11-02 08:00", "11-03 07:00", "11-04 07:00", "11-05 07:00"],
    ),
    "the rules come late, in the working hours": Change(
        MIDDLE_EUROPE,
        SUMMER_FOR_EVER,
        "2027-11-03 10:20",
        ["11-02 08:00", "11-03 08:00", "11-04 07:00", "11-05 07:00"],
    ),
    "the clock is an hour on from tomorrow": Change(
        WINTER_FOR_EVER,
        AN_HOUR_ON_FROM_TOMORROW,
        "2027-06-10 12:00",
        ["06-09 08:00", "06-10 08:00", "06-11 07:00", "06-12 07:00"],
    ),
    "a day is left out": Change(
        BEFORE_SAMOA,
        SAMOA,
        "2027-12-29 20:00",
        ["12-28 19:00", "12-29 19:00", "12-30 10:00", "12-30 19:00", "12-31 19:00"],
    ),
}


async def fired_over(change: Change, harness: Callable[..., Any]) -> dict[str, list[datetime]]:
    """Return the fires of each job from two days before the change until two days after it."""
    app = Horai("almanac")

    async def fire() -> None: ...

    for name, fields in JOBS.items():
        app.job(fire, name=name, timezone=PLACE, **fields)
    with zones.use(Edition("2027a", {PLACE: change.old})):
        async with harness(app, start=at(change.at) - DAYS) as time:
            await time.advance(DAYS)
            with zones.use(Edition("2027b", {PLACE: change.new})):
                trigger = time._workplace._trigger
                trigger.reload()
                await trigger.step(time.now)
                await time.advance(DAYS)
            return {name: [each.fire_time for each in time.fired(name)] for name in JOBS}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
async def test_X15_over_a_change_of_rules_every_slot_fires_once(change: Change, horai_harness: Callable[..., Any]):
    fired = await fired_over(change, horai_harness)

    assert [f"{instant:%m-%d %H:%M}" for instant in fired["nine"]] == change.nine
    for instants in fired.values():
        assert instants == sorted(set(instants)), "no instant twice"
    for name in ("nine", "hours", "night"):
        walls = [change.wall(instant) for instant in fired[name]]
        assert walls == sorted(set(walls)), f"{name}: no time on the wall twice"
    assert {after - before for before, after in pairwise(fired["interval"])} == {5 * HOUR}
    assert all(change.wall(instant).minute == 30 for instant in fired["half"])
