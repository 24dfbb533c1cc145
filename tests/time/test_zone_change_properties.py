"""Properties of any change of the zone rules: instants and wall times only increase."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise, product

from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples
from zone_moves import PLACE, edition, marked, moved
from zone_rules import HOUR, Clock, at

from horai.time import zones
from horai.time.cron import DstPolicy
from horai.time.schedule import CronSchedule, fires_between, next_after, wall_of
from horai.time.zone_change import mark_at, mark_before, next_undone, recomputed

POLICIES = [DstPolicy(gap, overlap) for gap, overlap in product(("shift", "skip"), ("first", "last", "both"))]
BOTH = DstPolicy("shift", "both")

EXPRESSIONS = [
    "30 2 * * *",
    "0,30 1,2,3 * * *",
    "0 9 * * MON-FRI",
    "0 0 * * *",
    "45 23 L * ?",
    "15 0-23 * * *",
    "*/20 * * * *",
    "5 * * * *",
]
ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "Africa/Cairo",
]
MOMENTS = st.datetimes(datetime(2011, 12, 1), datetime(2030, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


def schedule_of(expression: str, place: str, policy: DstPolicy) -> CronSchedule:
    return CronSchedule("0 " + expression if "?" in expression else expression, place, policy)


@settings(max_examples=examples(400))
@given(st.sampled_from(EXPRESSIONS), st.sampled_from(ZONES), st.sampled_from(POLICIES), MOMENTS, st.integers(0, 8000))
def test_by_unchanged_rules_every_schedule_stays_where_it_is(
    expression: str, place: str, policy: DstPolicy, now: datetime, seconds: int
):
    """Also in the hours around a clock change, which most moments are far from."""
    schedule = schedule_of(expression, place, policy)
    turned = next((t for t in clock_changes(place, now)), now)
    for moment in (now, turned + timedelta(seconds=seconds - 4000)):
        coming = next_after(schedule, moment)
        assert coming is not None
        assert recomputed(schedule, coming, mark_before(schedule, coming, moment)) == coming
        assert recomputed(schedule, coming, mark_before(schedule, coming, coming + 300 * HOUR)) == coming
        assert next_undone(schedule, mark_at(schedule, coming)) == next_after(schedule, coming)


def clock_changes(place: str, after: datetime) -> list[datetime]:
    """The hours of the coming year in which the offset of a zone changes."""
    where = zones.zone(place)
    hours = [after.replace(minute=0, second=0, microsecond=0) + n * 24 * HOUR for n in range(366)]
    days = [
        (left, right)
        for left, right in pairwise(hours)
        if left.astimezone(where).utcoffset() != right.astimezone(where).utcoffset()
    ]
    return [
        next(
            left + n * HOUR
            for n in range(1, 25)
            if (left + n * HOUR).astimezone(where).utcoffset() != left.astimezone(where).utcoffset()
        )
        for left, _ in days
    ]


def test_times_that_come_again_by_the_new_rules_do_not_bring_back_what_was_done_behind_them():
    """Two hours were gone from the clock by the change of rules, and it has just been put back one more: both policies of the
    overlap would fire its second hour, and after that the one that had been done by the old rules."""
    hourly = CronSchedule("15 0-23 * * *", PLACE, dst=BOTH)
    ahead, behind = Clock(2 * HOUR), Clock(HOUR, [("2027-06-10T12:00Z", timedelta(0))])

    _, after = moved(hourly, "2027-06-10 12:10", ahead, behind)

    assert after == at("2027-06-10 14:15")


BEGIN = at("2027-06-01 00:00")
OFFSETS = st.sampled_from([-11, -3, 0, 1, 2, 3.5, 13]).map(lambda hours: hours * HOUR)
STEPS = st.sampled_from([-24, -3, -2, -1, -0.5, 0.5, 1, 2, 24]).map(lambda hours: hours * HOUR)


@st.composite
def clocks(draw: st.DrawFn) -> Clock:
    """An offset, and up to three changes a week and more apart, at any quarter of an hour."""
    offset = first = draw(OFFSETS)
    changes: list[tuple[str, timedelta]] = []
    when = BEGIN - 60 * HOUR
    for _ in range(draw(st.integers(0, 3))):
        when += timedelta(days=7, minutes=15 * draw(st.integers(1, 96)))
        offset += draw(STEPS)
        if abs(offset) >= 23 * HOUR:
            break
        changes.append((when.isoformat(), offset))
    return Clock(first, changes)


@settings(max_examples=examples(400))
@given(
    st.sampled_from(EXPRESSIONS),
    st.sampled_from(POLICIES),
    clocks(),
    clocks(),
    st.integers(0, 30 * 24 * 60),
    st.integers(0, 90),
)
def test_over_any_change_of_rules_instants_and_wall_times_only_go_on(
    expression: str, policy: DstPolicy, old: Clock, new: Clock, minute: int, late: int
):
    """Fires by the old rules until they change, then by the new: no instant twice, and no wall time of a fixed one, but
    where the policy says so; and what the new rules have behind all that fires."""
    schedule = schedule_of(expression, PLACE, policy)
    change_at = BEGIN + timedelta(minutes=minute, seconds=late)
    with zones.use(edition(old)):
        done = list(fires_between(schedule, BEGIN - 48 * HOUR, change_at, 10_000))
        shown = [wall_of(schedule, fire) for fire in done]
    coming, mark = marked(schedule, change_at, old)
    with zones.use(edition(new)):
        following = recomputed(schedule, coming, mark)
        assert following is not None
        fresh = [following, *fires_between(schedule, following, following + 100 * HOUR, 500)]
        walls = [fire.astimezone(zones.zone(PLACE)) for fire in fresh]
        left_out = list(fires_between(schedule, change_at, following - timedelta(seconds=1), 10_000))
        reasons = [fire.astimezone(zones.zone(PLACE)) for fire in left_out]

    assert all(left < right for left, right in pairwise([*done, *fresh]))
    if schedule.cron.is_wildcard:
        assert not left_out
        return
    again = [wall for wall in walls if wall.replace(tzinfo=None, fold=0) in set(shown)]
    assert not [wall for wall in again if policy.overlap != "both" or wall.fold == 0]
    assert all(wall.replace(tzinfo=None) <= mark.wall for wall in reasons), "left out is only what is done on the wall"
