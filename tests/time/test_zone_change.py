"""A change of the zone rules: what was done stays done, by the clock on the wall and by the one of the world."""

from datetime import datetime, timedelta

import pytest
from zone_moves import PLACE, edition, marked, moved
from zone_rules import HOUR, Clock, at

from horai.time import zones
from horai.time.cron import DstPolicy
from horai.time.schedule import CronSchedule, EverySchedule, Schedule, fires_between, next_after, wall_of
from horai.time.zone_change import ZoneMark, mark_at, mark_before, next_undone, recomputed

BOTH = DstPolicy("shift", "both")
LAST = DstPolicy("shift", "last")

MIDDLE_EUROPE = Clock(HOUR, [("2027-03-28T01:00Z", 2 * HOUR), ("2027-10-31T01:00Z", HOUR)])
WINTER_FOR_EVER = Clock(HOUR)
SUMMER_FOR_EVER = Clock(HOUR, [("2027-03-28T01:00Z", 2 * HOUR)])


# A fixed time stays where it is on the wall


def test_a_fixed_time_moves_with_the_wall_when_summer_time_is_cancelled():
    nine = CronSchedule("0 9 * * *", PLACE)

    assert moved(nine, "2027-03-28 09:00", MIDDLE_EUROPE, WINTER_FOR_EVER) == (
        at("2027-03-29 07:00"),
        at("2027-03-29 08:00"),
    )


def test_a_fixed_time_moves_with_the_wall_when_summer_time_is_kept():
    nine = CronSchedule("0 9 * * *", PLACE)

    assert moved(nine, "2027-10-31 12:00", MIDDLE_EUROPE, SUMMER_FOR_EVER) == (
        at("2027-11-01 08:00"),
        at("2027-11-01 07:00"),
    )


def test_a_slot_that_fired_does_not_come_again_though_the_clock_was_put_back():
    """09:00 was at 07:00Z when it fired; by the new rules it is at 08:00Z, in half an hour."""
    nine = CronSchedule("0 9 * * *", PLACE)

    _, after = moved(nine, "2027-04-01 07:30", MIDDLE_EUROPE, WINTER_FOR_EVER)

    assert after == at("2027-04-02 08:00")


def test_a_slot_that_has_not_fired_and_now_lies_in_the_past_is_late():
    """On 2 November at 07:30Z it was half past eight and is half past nine: 09:00, at 07:00Z, is the misfire policy's."""
    nine = CronSchedule("0 9 * * *", PLACE)
    _, mark = marked(nine, at("2027-11-01 08:00"), MIDDLE_EUROPE)
    with zones.use(edition(SUMMER_FOR_EVER)):
        after = next_undone(nine, mark)

    assert mark.passed == at("2027-11-01 08:00")
    assert after == at("2027-11-02 07:00")


def test_no_slot_takes_the_instant_of_one_that_fired():
    """11:00 fired at 10:00Z. By the new rules that is 12:00, which must not be a second run of the same instant."""
    hours = CronSchedule("0 9-17 * * *", PLACE)

    assert moved(hours, "2027-11-03 10:20", MIDDLE_EUROPE, SUMMER_FOR_EVER) == (
        at("2027-11-03 11:00"),
        at("2027-11-03 11:00"),
    )


def test_an_hour_that_the_clock_shows_again_by_the_new_rules_is_not_fired_again():
    """11:00 fired at 09:00Z. By the new rules 10:00Z is 11:00."""
    hours = CronSchedule("0 9-17 * * *", PLACE)

    assert moved(hours, "2027-04-01 09:20", MIDDLE_EUROPE, WINTER_FOR_EVER) == (
        at("2027-04-01 10:00"),
        at("2027-04-01 11:00"),
    )


# What a gap took, and what an overlap showed twice


@pytest.mark.parametrize("gap", ["shift", "skip"])
def test_a_time_that_was_to_be_lost_in_a_gap_fires_when_there_is_none(gap: str):
    night = CronSchedule("15,30 2 * * *", PLACE, DstPolicy.from_spec({"gap": gap}))

    before, after = moved(night, "2027-03-27 12:00", MIDDLE_EUROPE, WINTER_FOR_EVER)

    assert before == (at("2027-03-28 01:00") if gap == "shift" else at("2027-03-29 00:15"))
    assert after == at("2027-03-28 01:15")


@pytest.mark.parametrize(("gap", "after"), [("shift", "2027-03-28 01:00"), ("skip", "2027-03-29 00:30")])
def test_a_time_that_falls_into_a_new_gap_is_dealt_with_by_the_policy(gap: str, after: str):
    night = CronSchedule("30 2 * * *", PLACE, DstPolicy.from_spec({"gap": gap}))

    assert moved(night, "2027-03-27 12:00", WINTER_FOR_EVER, MIDDLE_EUROPE) == (at("2027-03-28 01:30"), at(after))


def test_a_shifted_time_that_has_fired_does_not_fire_again_when_new_rules_remove_the_gap():
    """02:30 was lost and fired at 03:00; by the new rules 02:30 comes half an hour later."""
    night = CronSchedule("30 2 * * *", PLACE)

    _, after = moved(night, "2027-03-28 01:05", MIDDLE_EUROPE, WINTER_FOR_EVER)

    assert after == at("2027-03-29 01:30")


@pytest.mark.parametrize(
    ("policy", "now", "after"),
    [
        (DstPolicy(), "2027-10-31 00:40", "2027-11-01 00:00"),
        (LAST, "2027-10-31 00:40", "2027-11-01 00:00"),
        (BOTH, "2027-10-31 00:40", "2027-11-01 00:00"),
        (BOTH, "2027-10-31 01:10", "2027-11-01 00:00"),
    ],
)
def test_an_overlap_that_is_cancelled_while_it_lasts_repeats_nothing(policy: DstPolicy, now: str, after: str):
    """At 00:40Z 02:00 and 02:30 have been shown once, at 01:10Z 02:00 twice. The slots of `last` lie in the past then:
    at 00:00Z and 00:30Z, before they were looked for."""
    night = CronSchedule("0,30 2 * * *", PLACE, policy)

    assert moved(night, now, MIDDLE_EUROPE, SUMMER_FOR_EVER)[1] == at(after)


def test_an_overlap_that_comes_earlier_than_planned_repeats_nothing():
    """02:30 fired at 00:30Z. By the new rules the clock went back two hours before that, and shows 02:30 at 01:30Z."""
    night = CronSchedule("30 2 * * *", PLACE)
    earlier = Clock(2 * HOUR, [("2027-10-30T23:00Z", HOUR)])

    assert moved(night, "2027-10-31 00:31", MIDDLE_EUROPE, earlier) == (at("2027-11-01 01:30"), at("2027-11-01 01:30"))


def test_a_time_of_an_overlap_that_the_clock_shows_once_after_all_is_not_fired_for_the_second_time():
    """At 01:10Z 02:00 and 02:30 had fired, and 02:00 again; by the new rules 02:30 is shown at 01:30Z, for the first time."""
    night = CronSchedule("0,30 2 * * *", PLACE, BOTH)
    earlier = Clock(2 * HOUR, [("2027-10-30T23:00Z", HOUR)])

    assert moved(night, "2027-10-31 01:10", MIDDLE_EUROPE, earlier) == (at("2027-10-31 01:30"), at("2027-11-01 01:00"))


def test_a_last_repeated_time_that_has_fired_does_not_fire_again_when_new_rules_move_it_later():
    """02:30 fired at 01:30Z; by the new rules its last time is 02:30Z."""
    night = CronSchedule("30 2 * * *", PLACE, LAST)
    later = Clock(HOUR, [("2027-10-31T02:00Z", timedelta(0))])

    assert moved(night, "2027-10-31 01:40", MIDDLE_EUROPE, later) == (at("2027-11-01 01:30"), at("2027-11-01 02:30"))


def test_the_second_time_of_an_overlap_stays_while_the_overlap_does():
    night = CronSchedule("0,30 2 * * *", PLACE, BOTH)
    also_next_year = Clock(HOUR, [*MIDDLE_EUROPE.changes, ("2028-03-26T01:00Z", 2 * HOUR)])

    for now, coming in [("2027-10-31 00:40", "01:00"), ("2027-10-31 01:10", "01:30")]:
        expected = at(f"2027-10-31 {coming}")
        assert moved(night, now, MIDDLE_EUROPE, also_next_year) == (expected, expected)


def test_a_slot_at_the_end_of_an_overlap_is_not_part_of_it():
    three = CronSchedule("0 3 * * *", PLACE)

    assert moved(three, "2027-10-31 01:30", MIDDLE_EUROPE, MIDDLE_EUROPE) == (at("2027-10-31 02:00"),) * 2


def test_behind_the_mark_the_first_showing_of_an_overlap_counts():
    """02:20 is done. By the new rules the clock shows 01:20, and 02:30 twice before long."""
    night = CronSchedule("0,30 1,2 * * *", PLACE)
    behind = Clock(2 * HOUR, [("2027-10-31T01:00Z", HOUR)])

    assert moved(night, "2027-10-30 23:20", Clock(3 * HOUR), behind) == (at("2027-10-30 23:30"), at("2027-10-31 00:30"))


# A zone that jumps over a day, and one that has a day twice


def test_a_day_that_a_zone_jumps_over_is_one_lost_slot():
    """As Samoa left out 30 December 2011."""
    over = Clock(-10 * HOUR, [("2027-12-30T10:00Z", 14 * HOUR)])
    nine = CronSchedule("0 9 * * *", PLACE)

    coming, after = moved(nine, "2027-12-29 20:00", Clock(-10 * HOUR), over)
    assert (coming, after) == (at("2027-12-30 19:00"), at("2027-12-30 10:00"))
    with zones.use(edition(over)):
        assert [wall_of(nine, fire).isoformat() for fire in fires_between(nine, at("2027-12-29 20:00"), at("2028-01-02"), 3)] == [
            "2027-12-31T00:00:00",
            "2027-12-31T09:00:00",
            "2028-01-01T09:00:00",
        ]  # fmt: skip


def test_a_day_that_a_zone_has_twice_is_fired_once():
    again = Clock(14 * HOUR, [("2027-12-30T10:00Z", -10 * HOUR)])
    nine = CronSchedule("0 9 * * *", PLACE)

    assert moved(nine, "2027-12-30 08:00", Clock(14 * HOUR), again) == (at("2027-12-30 19:00"), at("2027-12-31 19:00"))


# What follows real time


@pytest.mark.parametrize("cron", ["30 * * * *", "*/30 8-18 * * *"])
def test_a_wildcard_goes_on_behind_the_last_instant(cron: str):
    half_an_hour_on = Clock(HOUR, [("2027-03-28T01:00Z", 1.5 * HOUR)])
    coming, after = moved(CronSchedule(cron, PLACE), "2027-06-01 09:40", MIDDLE_EUROPE, half_an_hour_on)

    assert at("2027-06-01 09:40") < coming
    assert after == at("2027-06-01 10:00")


def test_an_interval_knows_no_zones_but_for_its_excluded_dates():
    plain = EverySchedule(timedelta(minutes=10))
    assert moved(plain, "2027-06-01 09:45", MIDDLE_EUROPE, WINTER_FOR_EVER) == (at("2027-06-01 09:50"),) * 2

    but_one_day = EverySchedule(timedelta(minutes=10), timezone=PLACE, excluded=("2027-06-01",))
    before, after = moved(but_one_day, "2027-05-31 21:55", MIDDLE_EUROPE, WINTER_FOR_EVER)
    assert (before, after) == (at("2027-06-01 22:00"), at("2027-05-31 22:00"))


# A slot that was begun, a schedule from before there were marks


def test_behind_a_slot_that_was_begun_comes_the_next_one_on_the_wall():
    """09:00 was begun at 07:00Z by the old rules; by the new ones 09:00 is at 08:00Z, and is the same slot."""
    nine = CronSchedule("0 9 * * *", PLACE)
    with zones.use(edition(MIDDLE_EUROPE)):
        mark = mark_at(nine, at("2027-04-01 07:00"))

    assert mark == ZoneMark(at("2027-04-01 07:00"), datetime.fromisoformat("2027-04-01T09:00"))
    with zones.use(edition(WINTER_FOR_EVER)):
        assert next_undone(nine, mark) == at("2027-04-02 08:00")


def test_without_a_mark_a_slot_stays_or_gives_way_to_the_next():
    nine = CronSchedule("0 9 * * *", PLACE)
    with zones.use(edition(WINTER_FOR_EVER)):
        assert recomputed(nine, at("2027-04-02 08:00"), None) == at("2027-04-02 08:00")
        assert recomputed(nine, at("2027-04-02 07:00"), None) == at("2027-04-02 08:00")


def test_the_mark_of_a_late_schedule_is_before_its_coming_slot():
    nine = CronSchedule("0 9 * * *", "UTC")

    mark = mark_before(nine, at("2027-04-01 09:00"), at("2027-04-05 12:00"))

    assert next_undone(nine, mark) == at("2027-04-01 09:00")


def test_a_schedule_without_a_slot_left_by_the_new_rules_ends():
    last = CronSchedule("0 30 9 29 2 ? 2028", PLACE)
    _, mark = marked(last, at("2028-02-29 08:00"), WINTER_FOR_EVER)
    with zones.use(edition(Clock(2 * HOUR))):
        assert next_undone(last, mark) is None


def test_a_clock_far_back_costs_no_walk_over_all_slots(monkeypatch: pytest.MonkeyPatch):
    """Every second of the day, by a fixed form, and a clock that is put back by a day."""
    seconds = CronSchedule("0-59 0-59 0-23 * * ?", PLACE)
    calls: list[datetime] = []

    def counted(schedule: Schedule, after: datetime) -> datetime | None:
        calls.append(after)
        return next_after(schedule, after)

    monkeypatch.setattr("horai.time.zone_change.next_after", counted)
    _, after = moved(seconds, "2027-06-01 12:00", Clock(12 * HOUR), Clock(-12 * HOUR))

    assert after == at("2027-06-02 12:00:01")
    assert len(calls) < 5
