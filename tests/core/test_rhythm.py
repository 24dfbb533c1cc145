"""The rhythm that jobs share: one row in the store, found by its identity."""

from datetime import UTC, datetime, timedelta

import pytest

from horai.core.timing import Rhythm
from horai.time.misfire import DEFAULT, MisfireRule, Policy
from horai.time.schedule import CronSchedule, EverySchedule, from_spec, identity, to_spec

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
HOURLY = EverySchedule(HOUR)


def test_the_default_misfire_adds_nothing_so_that_rows_of_earlier_versions_keep_their_identity():
    schedule = CronSchedule("0 9 * * *", "Europe/Berlin")

    assert Rhythm(schedule).identity == identity(schedule) == "cron 0 9 * * * in Europe/Berlin gap=shift overlap=first"
    assert Rhythm(schedule).to_spec() == to_spec(schedule)
    assert Rhythm(HOURLY).identity == identity(HOURLY) == "every 1h from 1970-01-01T00:00:00+00:00"
    assert Rhythm(schedule, MisfireRule(Policy.once, after=MINUTE)).identity == identity(schedule)


def test_a_spec_of_an_earlier_version_is_a_rhythm_with_the_default_misfire():
    spec = {"cron": "0 9 * * *", "timezone": "Europe/Berlin", "dst": {"gap": "shift", "overlap": "first"}}

    assert Rhythm.from_spec(spec) == Rhythm(from_spec(spec), DEFAULT)
    assert Rhythm.from_spec(spec).to_spec() == spec


@pytest.mark.parametrize(
    "misfire", [DEFAULT, MisfireRule(Policy.skip), MisfireRule(Policy.all, 9, 6 * HOUR, 2 * MINUTE)]
)
@pytest.mark.parametrize(
    "schedule",
    [HOURLY, EverySchedule(HOUR, NOON, "Asia/Tokyo", ("12-25",)), CronSchedule("0 0 9 * * ?", excluded=("01-01",))],
)
def test_a_rhythm_survives_the_store(schedule: CronSchedule | EverySchedule, misfire: MisfireRule):
    rhythm = Rhythm(schedule, misfire)

    assert Rhythm.from_spec(rhythm.to_spec()) == rhythm
    assert Rhythm.from_spec(rhythm.to_spec()).identity == rhythm.identity


def test_rhythms_that_treat_late_slots_otherwise_are_not_shared():
    rhythms = [
        Rhythm(HOURLY, misfire)
        for misfire in (DEFAULT, MisfireRule(Policy.skip), MisfireRule(Policy.all), MisfireRule(after=HOUR))
    ]

    assert len({rhythm.identity for rhythm in rhythms}) == len(rhythms)
